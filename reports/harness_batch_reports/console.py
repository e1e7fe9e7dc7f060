"""The one screen that a run leaves on stdout: what happened, what it cost, what to do next.

Plain text for a terminal or a log, as wide as it is told, usually no longer than 24 lines. Colour
is a palette, none by default.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from attrs import field, frozen
from rich.cells import cell_len, set_cell_size

from harness_batch_reports import figures
from harness_batch_reports.answers import answer_text
from harness_batch_reports.findings import every_finding, findings_told
from harness_batch_reports.hostile import inert, one_line
from harness_batch_reports.markdown_overview import change
from harness_batch_reports.next_steps import next_steps
from harness_batch_reports.reasons import kind, meaning
from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import (
    EXIT_WORDS,
    checks_told,
    elapsed,
    headline,
    outcome,
    session_cost,
    tokens_used,
    totals,
    worst_first,
)

ROWS = 8
"""Sessions shown; the rest is counted."""
_PATHS = 3
"""So many sessions show the path of their patch each; of more, the folder is named."""
_ANSWER_LINES = 6
_DETAIL_LINES = 4
_UNDER = " " * 13
"""What stands under a session's row begins below its name."""
_NOTICES = 2
_DENIALS = 3


@frozen
class Palette:
    """Terminal codes: `on[status]` before a word and `off` after it."""

    on: Mapping[str, str] = field(factory=dict)
    off: str = ""

    def paint(self, word: str, status: str) -> str:
        """The word in the colour of the status."""
        code = self.on.get(status)
        return f"{code}{word}{self.off}" if code else word


PLAIN = Palette()
"""No colour: pipes, files, NO_COLOR."""
COLOURED = Palette(
    {
        "passed": "\x1b[32m",
        "cached": "\x1b[32m",
        "failed": "\x1b[31m",
        "errored": "\x1b[33m",
        "cancelled": "\x1b[33m",
        "unfinished": "\x1b[33m",
        "strong": "\x1b[1m",
    },
    "\x1b[0m",
)
"""The eight colours that every terminal has."""


@frozen(kw_only=True)
class Screen:
    """How the text is laid out. `near`: paths below this folder are shown relative to it."""

    width: int = 80
    palette: Palette = PLAIN
    near: Path | None = None


def screen(
    report: BatchReport, layout: Screen | None = None, written: Mapping[str, Path] | None = None
) -> str:
    """The summary; `written` are the report files by what they are, e.g. `junit` -> path."""
    layout = layout or Screen()
    worst = worst_first(report.sessions)
    lines = [
        *_verdict(report, worst, layout),
        *_sessions(report, worst, layout),
        *_answer(report, layout),
        *_denied(report, layout),
        *_notices(report, layout),
        *_next(report, layout),
        *_files(_written(report, written or {}), layout),
    ]
    return _paragraphs(lines)


def _paragraphs(lines: Iterable[str]) -> str:
    """One blank line between paragraphs, none at the end."""
    blocks = (list(block) for full, block in groupby(lines, key=bool) if full)
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def _verdict(report: BatchReport, worst: tuple[Session, ...], layout: Screen) -> Iterator[str]:
    sums = totals(report.sessions)
    status = outcome(worst[0]) if worst else "passed"
    exit_code = report.run.exit_code
    tail = "cut off before its end" if exit_code is None else f"exit code {exit_code}"
    tail += f": {EXIT_WORDS[exit_code]}" if exit_code in _STOPPED else ""
    words = headline(report)
    yield layout.palette.paint(words[0].upper() + words[1:], status) + f" ({tail})"
    facts = [sums.cost, tokens_used(sums), figures.duration(elapsed(report))]
    yield _cut(" · ".join(fact for fact in facts if fact != "-"), layout.width)
    judged = [checks_told(sums), findings_told(every_finding(report))]
    if any(judged):
        yield _cut(" · ".join(words for words in judged if words), layout.width)
    yield ""


_STOPPED = frozenset({4, 130, 143})
"""Exit codes that the sessions alone do not explain."""


def _sessions(report: BatchReport, worst: tuple[Session, ...], layout: Screen) -> Iterator[str]:
    shown = worst[:ROWS]
    names = [one_line(session.item_key, 200) for session in shown]
    room = min(max((cell_len(name) for name in names), default=0), max(layout.width // 3, 16))
    for session, name in zip(shown, names, strict=True):
        alone = len(report.sessions) <= _PATHS
        yield _row(session, name, room, layout, "" if alone else session.detail)
        if alone:
            yield from _under(report, session, layout)
    if rest := worst[ROWS:]:
        counts = ", ".join(f"{n} {status}" for status, n in totals(rest).statuses.items())
        yield f"  … and {figures.count(len(rest), 'more session')}: {counts}"
    if shown:
        yield ""


def _row(session: Session, name: str, room: int, layout: Screen, detail: str | None) -> str:
    status = outcome(session)
    time = figures.duration(session.wall_s)
    facts = [_why(session, detail), change(session), session_cost(session), time]
    said = "  ".join(fact for fact in facts if fact not in {"", "-"})
    head = set_cell_size(_cut(name, room), room)
    rest = _cut(f"  {head}  {said}", layout.width - 11)
    return f"  {layout.palette.paint(f'{status:<9}', status)}{rest}"


def _why(session: Session, detail: str | None) -> str:
    if kind(session) == "passed":
        return "passed after a failed try" if session.flaky else ""
    detail = one_line(detail or "", 200)
    words = one_line(meaning(session).text, 120)
    return f"{words}: {detail}" if detail else words


def _under(report: BatchReport, session: Session, layout: Screen) -> Iterator[str]:
    """Below the row: why it is not good, in full, and where its patch is."""
    if kind(session) != "passed" and session.detail:
        yield from _wrapped(one_line(session.detail, 400), layout.width, _UNDER, _DETAIL_LINES)
    patch = next((file for file in session.files if file.endswith(".patch")), None)
    if patch is not None and report.folder is not None:
        yield f"{_UNDER}{_path(report.folder / patch, layout)}"


def _answer(report: BatchReport, layout: Screen) -> Iterator[str]:
    """The answer of a run of one session: it is what a review was run for."""
    if len(report.sessions) != 1 or not report.sessions[0].answer:
        return
    text = inert(answer_text(report.sessions[0].answer[:20_000])).strip()
    said = [line for line in text.split("\n") if line.strip()]
    lines = [line for one in said for line in _wrapped(one, layout.width, "  ", len(one))]
    yield from lines[:_ANSWER_LINES]
    if len(lines) > _ANSWER_LINES:
        yield f"  … {figures.count(len(lines) - _ANSWER_LINES, 'more line')}"
    yield ""


def _wrapped(text: str, width: int, indent: str, most: int) -> list[str]:
    """The line as lines that fit, broken between words where that is possible."""
    inner = indent + " " * (len(text) - len(text.lstrip()))
    fits = max(width, 40)
    lines = textwrap.wrap(text, fits, initial_indent=indent, subsequent_indent=inner,
                          max_lines=most, placeholder=" …", drop_whitespace=True)  # fmt: skip
    return [_cut(line, fits) for line in lines]


def _denied(report: BatchReport, layout: Screen) -> Iterator[str]:
    for denial in report.denials[:_DENIALS]:
        asked = one_line(f"{denial.permission}: {denial.pattern}", 400)
        yield _cut(f"  {f'denied {denial.times}x':<10} {asked}", layout.width)
    if len(report.denials) > _DENIALS:
        yield f"  … and {figures.count(len(report.denials) - _DENIALS, 'more denial')}"
    if report.denials:
        yield "  The lines that would allow them stand in the Markdown summary."
        yield ""


def _notices(report: BatchReport, layout: Screen) -> Iterator[str]:
    told = [notice for notice in report.notices if notice.level in {"warning", "error"}]
    for notice in told[:_NOTICES]:
        yield _cut(f"  {notice.level}: {one_line(notice.text, 400)}", layout.width)
    if len(told) > _NOTICES:
        yield f"  … and {figures.count(len(told) - _NOTICES, 'more notice')}"
    if told:
        yield ""


def _next(report: BatchReport, layout: Screen) -> Iterator[str]:
    """Commands are never cut: they are there to be copied."""
    for step in next_steps(report, layout.near):
        if step.command is None:
            continue
        command = one_line(step.command, 1_000)
        fits = len(step.words) + cell_len(command) + 4 <= layout.width
        shown = layout.palette.paint(command, "strong")
        yield f"  {step.words}:" + (f" {shown}" if fits else f"\n    {shown}")


def _written(report: BatchReport, written: Mapping[str, Path]) -> Mapping[str, Path]:
    patched = any(file.endswith(".patch") for session in report.sessions for file in session.files)
    if patched and len(report.sessions) > _PATHS and report.folder is not None:
        return {**written, "patches": report.folder / "items"}
    return written


def _files(written: Mapping[str, Path], layout: Screen) -> Iterator[str]:
    if written:
        yield ""
    width = max((len(name) for name in written), default=0)
    for name, path in written.items():
        yield f"  {name:<{width}}  {_path(path, layout)}"


def _path(path: Path, layout: Screen) -> str:
    if layout.near is not None and path.is_relative_to(layout.near):
        path = path.relative_to(layout.near)
    return one_line(str(path), 4_096)


def _cut(text: str, width: int) -> str:
    """At most `width` cells of a terminal, wide characters counted as two."""
    width = max(width, 8)
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
