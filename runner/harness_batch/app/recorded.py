"""A finished run by any of its names: an id, a folder, `last`, or an id that the history knows."""

from pathlib import Path

from harness_batch.app.finish import reported
from harness_batch.app.places import harness_of, history_of
from harness_batch.errors import UsageError
from harness_batch.store.runs import find_run
from harness_batch_reports.read import read_run
from harness_batch_reports.records import BatchReport, ReportError


def recorded(word: str, db: Path | None, cwd: Path) -> BatchReport:
    """The run, out of its folder when that is there, else out of the history.

    Raises: UsageError when neither knows it; StorageError.
    """
    try:
        folder = find_run(word, harness_of(cwd))
    except UsageError as error:
        history = history_of(db, cwd)
        if not word.startswith("run_") or not history.is_file():
            raise
        try:
            return read_run(history, word)
        except ReportError:
            raise UsageError(f"{error}; the history {history} does not know it either") from error
    return reported(folder)
