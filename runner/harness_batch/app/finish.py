"""After a run: the database completed, merged into the history, and every report written.

Also what `report` does again later: reports are made from the database alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from harness_batch.app.places import harness_of
from harness_batch.errors import StorageError, UsageError
from harness_batch.store.disk import write_bytes, write_copy
from harness_batch.store.folder import RunFolder
from harness_batch.store.history import merge
from harness_batch.store.lock import WAIT_SECONDS
from harness_batch.store.projection import ensure
from harness_batch.store.runs import find_run, find_session, holds_session
from harness_batch_reports import junit, markdown, result_json, sarif, transcript
from harness_batch_reports.html_run import html_page
from harness_batch_reports.read import read_run, read_transcripts, with_files
from harness_batch_reports.records import BatchReport, ReportError, Session


@frozen(kw_only=True)
class Copies:
    """Where further copies of reports are wanted."""

    dialect: str = "plain"
    junit: Path | None = None
    summary: Path | None = None
    html: Path | None = None
    sarif: Path | None = None
    project: Path | None = None
    """The checkout that paths in reports are relative to."""


def reported(folder: RunFolder) -> BatchReport:
    """The finished run, its database rebuilt first when it does not agree with the journal.

    Raises: StorageError, UsageError.
    """
    folder = ensured(folder)
    try:
        return read_run(folder.database)
    except ReportError as error:
        raise UsageError(str(error)) from error


def write_reports(folder: RunFolder, report: BatchReport, copies: Copies) -> Mapping[str, Path]:
    """junit.xml, summary.md, report.html, result.json, of reviews report.sarif; by what they are.

    Raises: StorageError.
    """
    written: dict[str, Path] = {}
    for name, place, copy, data in _texts(folder, report, copies):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(place, data)
        if copy is not None:
            write_copy(copy, data)
        written[name] = copy or place
    if copies.sarif is not None and "sarif" not in written:
        write_copy(copies.sarif, sarif.render(report))  # an upload step finds its file
    return {**written, "database": folder.database}


def _texts(
    folder: RunFolder, report: BatchReport, copies: Copies
) -> Iterator[tuple[str, Path, Path | None, bytes]]:
    """What each report is, where it goes, where its copy goes, and its bytes."""
    xml = junit.render(report, copies.dialect, copies.project)
    yield "junit", folder.junit, copies.junit, xml
    yield "summary", folder.summary, copies.summary, markdown.summary(report).encode()
    yield "page", folder.html, copies.html, html_of(folder, report)
    if sarif.has_reviews(report):
        yield "sarif", folder.sarif, copies.sarif, sarif.render(report)
    text = result_json.as_text(result_json.result(report))
    yield "result", folder.result, None, text.encode()


def html_of(folder: RunFolder, report: BatchReport) -> bytes:
    """The HTML page of the folder's run. Raises: UsageError."""
    try:
        return html_page(folder.database, report)
    except ReportError as error:
        raise UsageError(str(error)) from error


def into_history(
    folder: RunFolder, history: Path, *, wait_seconds: float = WAIT_SECONDS
) -> str | None:
    """Merge the run; words on what went wrong, None when nothing did. The run loses nothing."""
    try:
        merge(folder.database, history, wait_seconds=wait_seconds)
    except StorageError as error:
        return f"{error}; the run is complete in {folder.path}"
    return None


def write_transcripts(folder: RunFolder, report: BatchReport) -> BatchReport:
    """A transcript per attempt. The report knows of them: made again later, it is the same.

    Raises: StorageError.
    """
    for path, data in _transcripts(folder, report.sessions):
        write_bytes(path, data)
    return with_files(report)


def _transcripts(folder: RunFolder, sessions: Iterable[Session]) -> Iterator[tuple[Path, bytes]]:
    """Of each attempt its own, but the last one's tells all."""
    begun = {s.session_id: s for s in sessions if s.folder is not None and s.attempts}
    for told in read_transcripts(folder.database, tuple(begun.values())):
        session = begun[told.session_id]
        for n in (*(attempt.n for attempt in session.earlier), session.attempts):
            only = n if n < session.attempts else None
            place = folder.attempt(session.folder or "", n).transcript
            yield place, transcript.markdown(told, only).encode()


def ensured(folder: RunFolder) -> RunFolder:
    """The folder, with a database that agrees with its journal. Raises: StorageError.

    The database of a run that goes on in another process is its own: readers get one beside it.
    """
    if not folder.journal.exists():
        return folder
    if folder.is_running():
        folder = folder.live_view()
    ensure(folder.journal, folder.database)
    return folder


def session_of(word: str, run_word: str | None, cwd: Path) -> tuple[RunFolder, str]:
    """The run and id of a session named by id, or by an item's key in a run (the last one).

    Raises: UsageError that lists what there is.
    """
    harness = harness_of(cwd)
    if run_word is None and word.startswith("ses_"):
        return ensured(find_session(word, harness)), word
    folder = ensured(find_run(run_word or "last", harness))
    if word.startswith("ses_") and holds_session(folder, word):
        return folder, word
    sessions = reported(folder).sessions
    for session in sessions:
        if word in (session.session_id, session.item_key):
            return folder, session.session_id
    known = ", ".join(session.item_key for session in sessions[:10])
    raise UsageError(f"{folder.path} has no session {word!r}; it has {known or 'none'}")


def patch_of(word: str, run_word: str | None, cwd: Path) -> bytes | None:
    """The patch of the last attempt of a session; None when it left none.

    Raises: UsageError, also for a patch that the recipe's patch rules refuse.
    """
    folder, session_id = session_of(word, run_word, cwd)
    session = next((s for s in reported(folder).sessions if s.session_id == session_id), None)
    if session is None or session.folder is None or not session.attempts:
        return None
    path = folder.attempt(session.folder, session.attempts).patch
    if session.patch is not None and session.patch.refused is not None:
        raise UsageError(
            f"the patch rules refuse this patch: {session.patch.refused}. It is not applied; "
            f"read {path}, and take with `git apply` what you want of it"
        )
    return path.read_bytes() if path.exists() else None
