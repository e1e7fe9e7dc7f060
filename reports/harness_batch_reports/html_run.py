"""The HTML page of a finished run, out of its database and the patches in its folder."""

from collections.abc import Iterator
from pathlib import Path

from attrs import evolve

from harness_batch_reports import html
from harness_batch_reports.html_session import PATCH_LIMIT, Told
from harness_batch_reports.read import read_children, read_transcripts, read_usage
from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import worst_first


def html_page(db: Path, report: BatchReport) -> bytes:
    """The page of the run that `report` was read from `db`. Raises: ReportError."""
    return html.render(report, read_usage(db, report.run.run_id), _told(db, report))


def _told(db: Path, report: BatchReport) -> Iterator[Told]:
    """Sessions worst first, then the child sessions: when the page is full, they matter least."""
    for transcript in read_transcripts(db, worst_first(report.sessions)):
        patch = _patch(report, transcript.session) if transcript.session is not None else None
        yield Told(transcript=transcript, patch=patch)
    children = {child.session_id: child for child in read_children(db, report.run.run_id)}
    for transcript in read_transcripts(db, dict.fromkeys(children)):
        yield Told(transcript=evolve(transcript, child=children[transcript.session_id]))


def _patch(report: BatchReport, session: Session) -> str | None:
    """The beginning of `change.patch`, as much of it as the page shows; None without one."""
    file = next((file for file in session.files if file.endswith(".patch")), None)
    if file is None or report.folder is None:
        return None
    try:
        with (report.folder / file).open("rb") as patch:
            return patch.read(4 * PATCH_LIMIT).decode("utf-8", "replace")
    except OSError:
        return None
