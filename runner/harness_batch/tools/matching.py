"""The one place of an old text in a file, or a reason that helps to mend the call. Pure."""

from collections.abc import Iterator, Sequence
from itertools import islice

from attrs import frozen

from harness_batch.tools.fallbacks import CHAIN, MAX_SPANS, Span, most_lines
from harness_batch.tools.text import Source

MAX_FUZZY = 2 * 1024 * 1024
"""Characters of a file up to which the fallbacks are tried."""


@frozen
class Match:
    """Where the old text stands (positions in the view), and by which way it was found."""

    spans: tuple[Span, ...]
    way: str


@frozen
class Unmatched:
    """Why there is no place to put the new text."""

    reason: str


def find(source: Source, old: str, *, every: bool) -> Match | Unmatched:
    """The one place of `old`, or with `every` all of them, by the first way that settles it."""
    ambiguous: Unmatched | None = None
    for way, finder in CHAIN[: 1 if len(source.view) > MAX_FUZZY else None]:
        spans = _apart(islice(finder(source, old), MAX_SPANS if way != "exact" else None))
        if not spans or (way != "exact" and len(spans) == MAX_SPANS):
            continue
        if every or len(spans) == 1:
            return _proportionate(source, old, Match(spans, way))
        ambiguous = ambiguous or _several(source, spans)
        if way == "exact":
            break
    return ambiguous or Unmatched(_absent(source, old))


def _apart(spans: Iterator[Span]) -> tuple[Span, ...]:
    """Without those that overlap an earlier one."""
    kept: list[Span] = []
    for start, end in spans:
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return tuple(kept)


def _proportionate(source: Source, old: str, match: Match) -> Match | Unmatched:
    for start, end in match.spans:
        here = source.view[start:end]
        lines = here.count("\n") + 1 > most_lines(old.count("\n") + 1)
        if lines or len(here.strip()) > max(len(old) + 500, 4 * len(old)):
            return Unmatched(
                f"old_string was only found loosely ({match.way}), and the place from line "
                f"{source.line_of(start)} is much larger than old_string. Read the file again "
                "and give the exact text."
            )
    return match


def _several(source: Source, spans: Sequence[Span]) -> Unmatched:
    numbers = [str(source.line_of(start)) for start, _ in spans[:10]]
    more = ", ..." if len(spans) > 10 else ""
    return Unmatched(
        f"old_string stands in {len(spans)} places (lines {', '.join(numbers)}{more}). Add "
        "surrounding lines until it is unique, or set replace_all to true to change all of them."
    )


def _absent(source: Source, old: str) -> str:
    """Not found; the line that looks most like its first one helps the model to mend it."""
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    for number, line in enumerate(source.view.split("\n"), start=1):
        if first and first in line:
            return (
                f"old_string was not found. Its first line {first[:80]!r} stands in line {number}, "
                "but what follows differs. Read the file from there and copy the text exactly."
            )
    return (
        "old_string was not found. Read the file again and copy the text exactly, without the "
        "line numbers."
    )
