"""A finished run as a page of Markdown: for a CI system's summary, or a comment.

Verdict first, then what it cost and what to do next; one table, worst first; what reviews found;
what was denied and the lines that would allow it; what changed; the reasons, folded. The page is a
list of pieces in the order of their importance, and is cut after the last one that fits, with a
line that says so.
Text that an agent, its tools or a repository wrote stands in code only: nothing of it renders.
"""

from collections.abc import Callable, Iterable, Sequence

from attrs import evolve, frozen

from harness_batch_reports import markdown_details, markdown_overview
from harness_batch_reports.records import BatchReport

SUMMARY_BYTES = 900 * 1024
"""GitHub takes a step summary of 1 MiB; others may write into the same one."""
COMMENT_CHARACTERS = 65_536
"""The longest comment GitHub takes."""


@frozen(kw_only=True)
class _Room:
    """How much of a page there is: its limit, in what unit, and how it may be spent."""

    limit: int
    unit: str
    measure: Callable[[str], int]
    rows: int
    """Sessions in the table; the rest is counted in one line."""


_SUMMARY = _Room(
    limit=SUMMARY_BYTES, unit="bytes", measure=lambda text: len(text.encode()), rows=1_000
)
_COMMENT = _Room(limit=COMMENT_CHARACTERS, unit="characters", measure=len, rows=60)


def summary(report: BatchReport) -> str:
    """The page, at most `SUMMARY_BYTES` in UTF-8."""
    return _page(report, _SUMMARY)


def comment(report: BatchReport, taken: int = 0) -> str:
    """The page for a pull request's comment, at most `COMMENT_CHARACTERS` with those `taken`."""
    return _page(report, evolve(_COMMENT, limit=_COMMENT.limit - taken))


def _page(report: BatchReport, room: _Room) -> str:
    pieces = [
        *markdown_overview.verdict(report),
        *_table(report, room),
        *markdown_details.notices(report),
        *markdown_details.found(report),
        *markdown_details.denied(report),
        *markdown_details.changes(report),
        *markdown_details.reasons(report),
        *markdown_details.answers(report),
    ]
    return _fitted(pieces, markdown_overview.footer(report), room)


def _table(report: BatchReport, room: _Room) -> tuple[str, ...]:
    """The table with as many rows as half of the page can hold."""
    rows = room.rows
    while True:
        table = tuple(markdown_overview.table(report, rows))
        if rows == 1 or sum(map(room.measure, table)) <= room.limit // 2:
            return table
        rows //= 2


def _fitted(pieces: Sequence[str], footer: str, room: _Room) -> str:
    """The pieces that fit, the line that says what does not, the footer."""
    reserve = room.measure(_cut_line(len(pieces), room)) + room.measure(footer) + 8
    kept: list[str] = []
    used = 0
    for piece in pieces:
        used += room.measure(piece) + 2
        if used + reserve > room.limit:
            kept.append(_cut_line(len(pieces) - len(kept), room))
            break
        kept.append(piece)
    return _joined([*kept, footer])


def _cut_line(left_out: int, room: _Room) -> str:
    return (
        f"**Cut here**: {left_out:,} more parts do not fit into {room.limit:,} {room.unit}. "
        "The run's folder and `harness-batch report` have the rest."
    )


def _joined(pieces: Iterable[str]) -> str:
    return "\n\n".join(piece for piece in pieces if piece) + "\n"
