"""The ways in which an old text is looked for, from exact to loose. Pure.

Each is a function from the file and the text to spans of the file's view, in order. Looking is
bounded: no pattern backtracks, and similarity has a budget of its own.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice

from attrs import define

from harness_batch.tools.text import Source

SIMILARITY = 0.65
"""The least mean similarity of the lines between two anchors."""
MAX_SPANS = 1000
"""Places, or anchors of places, after which one way of looking stops."""
_BUDGET = 3_000_000
"""Products of line lengths that all similarities of one search may cost."""

Span = tuple[int, int]
Finder = Callable[[Source, str], Iterator[Span]]


def exact(source: Source, old: str) -> Iterator[Span]:
    """Letter by letter."""
    at = source.view.find(old)
    while at >= 0:
        yield at, at + len(old)
        at = source.view.find(old, at + len(old))


def trimmed_lines(source: Source, old: str) -> Iterator[Span]:
    """Whole lines that are equal without blanks around them."""
    needle, closed = _lines(old)
    lines = source.view.split("\n")
    wanted = [line.strip() for line in needle]
    if not any(wanted):
        return
    hay = "\n" + "\n".join(line.strip() for line in lines) + "\n"
    sought = "\n" + "\n".join(wanted) + "\n"
    at = hay.find(sought)
    counted, first = 0, 0
    while at >= 0:
        first += hay.count("\n", counted, at)
        counted = at
        yield _line_span(source, first, len(needle), closed=closed)
        at = hay.find(sought, at + 1)


def block_anchors(source: Source, old: str) -> Iterator[Span]:
    """A block whose first and last line are equal and whose middle is similar."""
    needle, closed = _lines(old)
    if len(needle) < 3:
        return
    lines = [line.strip() for line in source.view.split("\n")]
    wanted = [line.strip() for line in needle]
    if not (wanted[0] and wanted[-1]):
        return
    likeness = _Likeness()
    longest = most_lines(len(needle))
    for first in islice(_all_equal(lines, wanted[0]), MAX_SPANS):
        try:
            last = lines.index(wanted[-1], first + 2, first + longest)
        except ValueError:
            continue
        if likeness.of(wanted[1:-1], lines[first + 1 : last]) >= SIMILARITY:
            yield _line_span(source, first, last - first + 1, closed=closed)


def normalised_blanks(source: Source, old: str) -> Iterator[Span]:
    """Runs of blanks count as one, and those around line ends as none."""
    needle, _ = _collapsed(old.strip())
    hay, runs = _collapsed(source.view)
    if not needle:
        return
    ends = [end for end, _ in runs]
    at = hay.find(needle)
    while at >= 0:
        last = at + len(needle) - 1
        yield _widened(at, ends, runs), _widened(last, ends, runs) + 1
        at = hay.find(needle, last + 1)


def flexible_indentation(source: Source, old: str) -> Iterator[Span]:
    """Whole lines that are equal once each block has lost the indentation its lines share."""
    needle, _ = _lines(old)
    wanted = _outdented(needle)
    for start, end in trimmed_lines(source, old):
        here, _ = _lines(source.view[start:end])
        if _outdented(here) == wanted:
            yield start, end


def unescaped(source: Source, old: str) -> Iterator[Span]:
    r"""The text after one round of unescaping (`\n`, `\t`, `\"` written out)."""
    plain = unescape(old)
    if plain != old:
        yield from exact(source, plain)


def trimmed_boundary(source: Source, old: str) -> Iterator[Span]:
    """The text without the blanks and line ends at its two ends."""
    bare = old.strip()
    if bare and bare != old:
        yield from exact(source, bare)


def context_lines(source: Source, old: str) -> Iterator[Span]:
    """As many lines, the first and last equal, and half of those between."""
    needle, closed = _lines(old)
    if len(needle) < 3:
        return
    lines = [line.strip() for line in source.view.split("\n")]
    wanted = [line.strip() for line in needle]
    size = len(wanted)
    if not (wanted[0] and wanted[-1]):
        return
    for first in islice(_all_equal(lines, wanted[0]), MAX_SPANS):
        here = lines[first : first + size]
        if len(here) < size or here[-1] != wanted[-1]:
            continue
        middle = [(a, b) for a, b in zip(wanted[1:-1], here[1:-1], strict=True) if a or b]
        if 2 * sum(a == b for a, b in middle) >= len(middle):
            yield _line_span(source, first, size, closed=closed)


CHAIN: tuple[tuple[str, Finder], ...] = (
    ("exact", exact),
    ("trimmed lines", trimmed_lines),
    ("block anchors", block_anchors),
    ("normalised blanks", normalised_blanks),
    ("flexible indentation", flexible_indentation),
    ("unescaped text", unescaped),
    ("trimmed boundary", trimmed_boundary),
    ("context lines", context_lines),
)
"""In the order in which they are tried."""


def unescape(text: str) -> str:
    """One level of backslash escapes removed."""
    known = {"n": "\n", "t": "\t", "r": "\r", "\n": "\n"}
    return re.sub(r"\\([nrt'\"`\\$\n])", lambda found: known.get(found[1], found[1]), text)


def most_lines(count: int) -> int:
    """Lines that a match of `count` lines may have."""
    return max(count + 3, 2 * count)


@define
class _Likeness:
    """Similarity of blocks of lines; a hostile file cannot make it cost more than its budget."""

    left: int = _BUDGET

    def of(self, wanted: Sequence[str], here: Sequence[str]) -> float:
        """Mean similarity, 0 to 1, line by line; lines without a partner count as 0."""
        pairs = list(zip(wanted, here, strict=False))
        if not pairs:
            return 1.0 if len(wanted) == len(here) else 0.0
        total = sum(self._pair(a, b) for a, b in pairs)
        return total / max(len(wanted), len(here))

    def _pair(self, a: str, b: str) -> float:
        if a == b:
            return 1.0
        cost = len(a) * len(b)
        if cost > self.left:
            return 0.0
        self.left -= cost
        return SequenceMatcher(None, a, b, autojunk=False).ratio()


def _lines(text: str) -> tuple[list[str], bool]:
    """Lines without their ends, and whether the last one had one."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        return lines[:-1], True
    return lines, False


def _line_span(source: Source, first: int, count: int, *, closed: bool) -> Span:
    """The view's span of `count` lines from `first` (0-based), with the last end if `closed`."""
    starts = source.line_starts
    after = first + count
    end = starts[after] if after < len(starts) else len(source.view) + 1
    if not closed or end > len(source.view):
        end -= 1
    return starts[first], end


def _collapsed(text: str) -> tuple[str, list[Span]]:
    """Runs of blanks as one, none at line ends; (end there, end here) of each run."""
    pieces: list[str] = []
    runs: list[Span] = []
    at = size = 0
    for found in re.finditer(r"[ \t\n]+", text):
        kept = "\n" * found[0].count("\n") or " "
        pieces += text[at : found.start()], kept
        size += found.start() - at + len(kept)
        at = found.end()
        runs.append((size, at))
    return "".join(pieces) + text[at:], runs


def _widened(at: int, ends: Sequence[int], runs: Sequence[Span]) -> int:
    """Position in the text itself of a position between the runs of its collapsed form."""
    before = bisect_right(ends, at)
    if not before:
        return at
    there, here = runs[before - 1]
    return at - there + here


def _all_equal(lines: Sequence[str], wanted: str) -> Iterator[int]:
    at = -1
    while True:
        try:
            at = lines.index(wanted, at + 1)
        except ValueError:
            return
        yield at


def _outdented(lines: Sequence[str]) -> list[str]:
    depths = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    shared = min(depths, default=0)
    return [line[shared:] if line.strip() else "" for line in lines]
