r"""A command's output in bounded memory, whatever it prints: the tail here, all of it in a file.

The file is begun when the output outgrows the memory, holds the bytes as they came but for the
runner's secrets, and stops at `MAX_FILE`. For the model odd bytes become \xNN, colours and cursor
movements go, and a progress bar that overwrites its line shows its last state.
"""

import re
from pathlib import Path
from typing import BinaryIO

from attrs import define, field

from harness_batch.tools.protocol import NO_SECRETS, SecretStream

MAX_MEMORY = 256 * 1024
"""Bytes of the tail that are kept."""
MAX_FILE = 64 * 1024 * 1024
"""Bytes of one command's output that are written down."""
_ESCAPES = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*+[ -/]*+[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b\n]*+(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|[PX^_][^\x1b\n]*+(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|[ -/]*+[0-~]?"  # two letters, and a lone escape
    r")"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@define
class Capture:
    """Takes chunks; call `close` before looking at `whole`."""

    file: Path
    """Where the whole output goes once it is too long for memory."""
    secrets: SecretStream = NO_SECRETS
    """Takes them out of what is written, before it is: not even a kill leaves one in the file."""
    total: int = 0
    """Bytes that came."""
    whole: Path | None = None
    """`file`, once it is written."""
    trouble: str | None = None
    """Why the file is not whole."""
    _tail: bytearray = field(factory=bytearray)
    _sink: BinaryIO | None = None

    def add(self, chunk: bytes) -> None:
        """More output. Never raises: a full disk costs the file, not the command."""
        if self._sink is None and self.total + len(chunk) > MAX_MEMORY and not self.trouble:
            self._begin()
        if self._sink is not None and not self.trouble:
            self._write(chunk)
        self.total += len(chunk)
        self._tail += chunk
        if len(self._tail) > 2 * MAX_MEMORY:
            del self._tail[:-MAX_MEMORY]

    def close(self) -> None:
        """No more output comes."""
        if self._sink is not None:
            try:
                if not self.trouble:
                    self._sink.write(self.secrets.rest())
                self._sink.close()
            except OSError as error:
                self.trouble = f"the file could not be written: {error.strerror}"

    def text(self) -> str:
        """The tail (all of it, when the output was short) for the model."""
        tail = bytes(self._tail[-MAX_MEMORY:])
        if self.total > len(tail):
            tail = tail[_continuation_bytes(tail) :]
        return readable(tail)

    def _begin(self) -> None:
        try:
            self._sink = self.file.open("wb")
        except OSError as error:
            self.trouble = f"the file could not be made: {error.strerror}"
            return
        self.whole = self.file
        self._write(bytes(self._tail), already=0)

    def _write(self, chunk: bytes, already: int | None = None) -> None:
        assert self._sink is not None
        room = MAX_FILE - (self.total if already is None else already)
        try:
            self._sink.write(self.secrets.let(chunk[:room]))
            if len(chunk) > room:
                self._sink.write(self.secrets.cut())
                self.trouble = f"the file holds only the first {MAX_FILE} bytes"
        except OSError as error:
            self.trouble = f"the file could not be written: {error.strerror}"


def readable(raw: bytes) -> str:
    """Output as text: no escape sequences, no control characters but tab and line feed."""
    text = _ESCAPES.sub("", raw.decode(errors="backslashreplace"))
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    overwritten = (line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines)
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", "\n".join(overwritten))


def _continuation_bytes(tail: bytes) -> int:
    """How many bytes at the front belong to a letter that was cut in two."""
    return next((n for n, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
