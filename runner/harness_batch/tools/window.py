r"""Some lines of a file that may be huge: streamed, bounded in memory, time and what is shown.

A line longer than `MAX_LINE_CHARACTERS` keeps its two ends. Bytes that are not UTF-8 are shown as
\xNN. Reading stops as soon as the wanted lines are there.
"""

import codecs
import os
from collections.abc import Iterator

from attrs import define, frozen

MAX_LINES = 2000
"""Lines of one call."""
MAX_LINE_CHARACTERS = 2000
"""Characters of one line."""
MAX_SHOWN = 48 * 1024
"""Bytes of all lines together; under the limit of every tool's output, so that nothing is lost."""
MAX_SCANNED = 512 * 1024 * 1024
"""Bytes that are looked through for the wanted lines."""
MAX_COUNTED = 16 * 1024 * 1024
"""Bytes of a file up to which all its lines are counted."""
_CHUNK = 256 * 1024
_SNIFFED = 8192
_ENDS = 4 * MAX_LINE_CHARACTERS
"""Bytes kept of either end of a long line; UTF-8 has at most four a character."""
_MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a WebP image, or sound or video (RIFF)"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document made of one)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3", "an SQLite database"),
    (codecs.BOM_UTF16_LE, "UTF-16 text (convert it with iconv to read it)"),
    (codecs.BOM_UTF16_BE, "UTF-16 text (convert it with iconv to read it)"),
)


@frozen
class Binary:
    """Not text; `kind` is a noun phrase."""

    kind: str


@frozen(kw_only=True)
class Window:
    """Lines `first` and on, ready to be shown."""

    first: int
    """1-based."""
    lines: tuple[str, ...]
    total: int | None
    """Lines of the file; None when reading stopped before its end."""
    odd_bytes: bool
    crlf: bool
    """The lines shown end in CR LF."""
    unended: bool
    """The file's last line was shown and has no end."""
    given_up: bool
    """The wanted lines lie further on than is looked."""


@define
class _Line:
    """A line while it is read: all of a short one, the ends of a long one."""

    head: bytearray
    tail: bytearray
    size: int = 0

    def add(self, piece: bytes) -> None:
        room = max(0, 2 * _ENDS - len(self.head))
        self.head += piece[:room]
        self.tail += piece[room:]
        if len(self.tail) > 2 * _CHUNK:
            del self.tail[:-_ENDS]
        self.size += len(piece)


def window(descriptor: int, size: int, offset: int, limit: int) -> Window | Binary:
    """At most `limit` lines from line `offset` (1-based) of an open file of `size` bytes.

    Raises: OSError.
    """
    start = os.pread(descriptor, _SNIFFED, 0)
    kind = _binary(start, size)
    if kind is not None:
        return Binary(kind)
    skipped, at = _skip(descriptor, offset - 1, len(codecs.BOM_UTF8) if _marked(start) else 0)
    if skipped < offset - 1:
        ended = at >= size
        return _nothing(offset, skipped + _has_rest(descriptor, size) if ended else None)
    return _collected(descriptor, at, offset, limit, size)


def _collected(descriptor: int, at: int, offset: int, limit: int, size: int) -> Window:
    lines: list[str] = []
    shown = 0
    odd = crlf = unended = whole = False
    within = size - at <= MAX_SCANNED
    for raw, cut, ended in _lines(descriptor, at):
        if len(lines) == limit:
            break
        text, is_odd = _clipped(raw, cut)
        shown += len(text.encode()) + 8
        if shown > MAX_SHOWN and lines:
            break
        lines.append(text)
        odd = odd or is_odd
        crlf = crlf or raw.endswith(b"\r")
        unended = not ended
    else:
        whole = within
    total = offset - 1 + len(lines) if whole else _counted(descriptor, size)
    return Window(
        first=offset,
        lines=tuple(lines),
        total=total,
        odd_bytes=odd,
        crlf=crlf,
        unended=unended and whole,
        given_up=False,
    )


def _nothing(offset: int, total: int | None) -> Window:
    return Window(
        first=offset,
        lines=(),
        total=total,
        odd_bytes=False,
        crlf=False,
        unended=False,
        given_up=total is None,
    )


def _skip(descriptor: int, count: int, at: int) -> tuple[int, int]:
    """Pass `count` line ends from byte `at` on; gives how many were passed, and where."""
    passed = 0
    while passed < count and at < MAX_SCANNED:
        chunk = os.pread(descriptor, _CHUNK, at)
        if not chunk:
            break
        here = chunk.count(b"\n")
        if passed + here < count:
            passed, at = passed + here, at + len(chunk)
            continue
        end = -1
        for _ in range(count - passed):
            end = chunk.index(b"\n", end + 1)
        return count, at + end + 1
    return passed, at


def _counted(descriptor: int, size: int) -> int | None:
    """Lines of the whole file; None when counting would take long."""
    if size > MAX_COUNTED:
        return None
    chunks = (os.pread(descriptor, _CHUNK, at) for at in range(0, size, _CHUNK))
    return sum(chunk.count(b"\n") for chunk in chunks) + _has_rest(descriptor, size)


def _has_rest(descriptor: int, size: int) -> bool:
    """Whether the last line has no end."""
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _lines(descriptor: int, at: int) -> Iterator[tuple[bytes, int, bool]]:
    """(the line or its two ends, bytes left out between them, whether a line feed ended it)."""
    line = _Line(bytearray(), bytearray())
    most = at + MAX_SCANNED
    while at < most and (chunk := os.pread(descriptor, _CHUNK, at)):
        at += len(chunk)
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line.add(piece)
            yield (*_finished(line), True)
            line = _Line(bytearray(), bytearray())
        line.add(rest)
    if line.size:
        yield (*_finished(line), False)


def _finished(line: _Line) -> tuple[bytes, int]:
    tail = bytes(line.tail[-_ENDS:])
    return bytes(line.head) + tail, line.size - len(line.head) - len(tail)


def _clipped(raw: bytes, left_out: int) -> tuple[str, bool]:
    """The line for the model, and whether it holds bytes that are not UTF-8."""
    text = raw.removesuffix(b"\r").decode(errors="backslashreplace")
    odd = left_out == 0 and not _is_utf8(raw)
    if left_out == 0 and len(text) <= MAX_LINE_CHARACTERS:
        return text, odd
    half = MAX_LINE_CHARACTERS // 2 - 30
    gone = f"{len(text) - 2 * half} characters" if left_out == 0 else f"about {left_out} bytes"
    return f"{text[:half]}[... {gone} left out ...]{text[-half:]}", odd


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _marked(start: bytes) -> bool:
    return start.startswith(codecs.BOM_UTF8)


def _binary(start: bytes, size: int) -> str | None:
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return kind
    if b"\0" in start:
        return "a binary file"
    control = sum(byte < 32 and byte not in b"\t\n\r\f\x1b\b" for byte in start)
    return "a binary file" if size and control * 10 > len(start) else None
