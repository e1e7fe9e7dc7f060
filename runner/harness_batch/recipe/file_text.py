"""A small text file read whole, or the one reason why not: size first, then encoding."""

import re
from pathlib import Path

from harness_batch.errors import Fault, FaultyInput

MAX_BYTES = 1_000_000
"""A recipe is written by people; what is larger is not one."""
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ufeff\ufffd-\U0010ffff]|[\ufffe\uffff]")
UNFIT = re.compile("[\0\ud800-\udfff]")
"""What escapes can put into a text and no process argument, file or database takes."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_small_text(file: Path, most: int = MAX_BYTES) -> str:
    """The text of a regular file of at most `most` bytes, UTF-8, a byte order mark left out.

    Raises: FaultyInput; a file that is too large is refused before it is read.
    """
    try:
        if not file.is_file():
            raise _refused(file, "no such file" if not file.exists() else "is not a regular file")
        size = file.stat().st_size
        if size > most:
            raise _refused(file, f"is {size:,} bytes long; more than {most:,} are not read")
        with file.open("rb") as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise _refused(file, f"cannot be read: {_reason(error)}") from error
    if len(data) > most:
        raise _refused(file, f"more than {most:,} bytes are not read")
    return _decoded(file, data)


def _decoded(file: Path, data: bytes) -> str:
    if data.startswith(_UTF16):
        raise _refused(file, "is UTF-16; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise FaultyInput([Fault(file, line, column, message)]) from error
    odd = _UNPRINTABLE.search(text)
    if odd is not None:
        line = text.count("\n", 0, odd.start()) + 1
        column = odd.start() - (text.rfind("\n", 0, odd.start()) + 1) + 1
        name = "a NUL" if odd.group() == "\0" else "the control character"
        message = f"{name} U+{ord(odd.group()):04X} does not belong in a text file"
        raise FaultyInput([Fault(file, line, column, message)])
    return text


def _refused(file: Path, message: str) -> FaultyInput:
    return FaultyInput([Fault(file, 0, 0, message)])


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
