"""A finished run by any of its names: an id, a folder, `last`, or an id that the history knows."""

from pathlib import Path

from harness_batch.app.finish import ensured
from harness_batch.app.places import harness_of, history_of
from harness_batch.errors import UsageError
from harness_batch.store.asking import holds_run
from harness_batch.store.runs import find_run
from harness_batch_reports.read import read_run
from harness_batch_reports.records import BatchReport, ReportError


def recorded(word: str, db: Path | None, cwd: Path) -> BatchReport:
    """The run, out of its folder when that is there, else out of the history.

    Raises: UsageError when neither knows it; StorageError.
    """
    database, run_id = database_of(word, db, cwd)
    try:
        return read_run(database, run_id)
    except ReportError as error:
        raise UsageError(str(error)) from error


def database_of(word: str, db: Path | None, cwd: Path) -> tuple[Path, str | None]:
    """The database that holds the run: its own, else the history, which needs the id.

    Raises: as `recorded`.
    """
    try:
        return ensured(find_run(word, harness_of(cwd))).database, None
    except UsageError:
        history = history_of(db, cwd)
        if not word.startswith("run_") or not history.is_file() or not holds_run(history, word):
            raise
    return history, word
