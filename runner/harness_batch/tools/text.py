r"""A file's bytes as text to search in, and back without touching a byte that was not named.

Bytes that are not UTF-8 ride along as surrogates. Old text is looked for with `\n` line ends
wherever it comes from; a replacement takes the line ends of the lines that it replaces.
"""

from bisect import bisect_right
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cached_property

from attrs import define, field

BOM = "\ufeff"
MAX_ALIGNED = 400
"""Lines of a replacement that are compared one by one; longer ones only at their two ends."""


def decode(data: bytes) -> str:
    """Lossless, whatever the bytes."""
    return data.decode(errors="surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of `decode`."""
    return text.encode(errors="surrogateescape")


@define(eq=False, slots=False)
class Source:
    r"""A text as it stands on the disk, with a view in which every line ends in `\n`."""

    raw: str
    view: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the view."""
        self.view = self.raw.replace("\r\n", "\n")

    @cached_property
    def _crs(self) -> list[int]:
        """Positions in the view of line feeds that have a carriage return before them."""
        found: list[int] = []
        at = self.raw.find("\r\n")
        while at >= 0:
            found.append(at - len(found))
            at = self.raw.find("\r\n", at + 2)
        return found

    @cached_property
    def line_starts(self) -> list[int]:
        """Where each line of the view begins."""
        starts = [0]
        at = self.view.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.view.find("\n", at + 1)
        return starts

    def line_of(self, at: int) -> int:
        """1-based number of the line that holds position `at` of the view."""
        return bisect_right(self.line_starts, at)

    def raw_at(self, at: int) -> int:
        """The position in `raw` of a position in the view (a line end counts from its CR)."""
        return at + bisect_right(self._crs, at - 1)

    def ends_like(self) -> str:
        """The line end that most lines have."""
        crlf = len(self._crs)
        return "\r\n" if crlf > self.view.count("\n") - crlf else "\n"

    def spliced(self, replacements: Iterable[tuple[int, int, str]]) -> str:
        """`raw` with new text in place of each (start, end) of the view, in order, ends kept."""
        pieces: list[str] = []
        at = 0
        for start, end, new in replacements:
            first, last = self.raw_at(start), self.raw_at(end)
            pieces += self.raw[at:first], self._blended(self.raw[first:last], new, last)
            at = last
        return "".join(pieces) + self.raw[at:]

    def _blended(self, old: str, new: str, after: int) -> str:
        """`new` with the line ends of `old`; an explicit CRLF in `new` stays one."""
        old_lines, new_lines = _cut(old), _cut(new)
        ends = [end for _, end in old_lines if end]
        usual = ends[-1] if ends else self._end_beside(after - len(old), after)
        kept = _aligned([line for line, _ in old_lines], [line for line, _ in new_lines])
        pieces: list[str] = []
        for number, (line, end) in enumerate(new_lines):
            twin = kept.get(number)
            theirs = old_lines[twin][1] if twin is not None else ""
            pieces.append(line + (theirs or usual if end == "\n" else end))
        return "".join(pieces)

    def _end_beside(self, start: int, end: int) -> str:
        """The line end of the line that holds `start:end`, of the one before, or the usual one."""
        after = self.raw.find("\n", end)
        if after < 0:
            after = self.raw.rfind("\n", 0, start)
        if after < 0:
            return self.ends_like()
        return "\r\n" if self.raw[after - 1 : after] == "\r" else "\n"


def _cut(text: str) -> list[tuple[str, str]]:
    """(line, its end) for each line; the last has no end, and is left out when empty."""
    lines: list[tuple[str, str]] = []
    for line in text.split("\n"):
        carried = line.endswith("\r")
        lines.append((line[:-1], "\r\n") if carried else (line, "\n"))
    last, end = lines.pop()
    tail = last + "\r" if end == "\r\n" else last
    return [*lines, (tail, "")] if tail else lines


def _aligned(old: list[str], new: list[str]) -> dict[int, int]:
    """For a line of `new` the line of `old` that it stays or replaces."""
    twins: dict[int, int] = {}
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        twins[head] = head
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
        twins[len(new) - tail] = len(old) - tail
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(old_middle), len(new_middle)) > MAX_ALIGNED:
        return twins
    matcher = SequenceMatcher(None, old_middle, new_middle, autojunk=False)
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        for step in range(min(i2 - i1, j2 - j1)):
            twins[head + j1 + step] = head + i1 + step
    return twins
