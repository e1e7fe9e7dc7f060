"""Finding a run or a session that somebody names on the command line."""

import mmap
from pathlib import Path

from harness_batch.errors import StorageError, UsageError
from harness_batch.store.folder import RunFolder

SHOWN = 5
"""Runs that an error message lists."""


def list_runs(harness: Path) -> tuple[RunFolder, ...]:
    """The runs under `.harness/`, newest first. Run ids sort by time of birth."""
    try:
        folders = [path for path in (harness / "runs").iterdir() if _is_run(path)]
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise StorageError(f"cannot list the runs in {harness}: {error.strerror}") from error
    return tuple(RunFolder(path) for path in sorted(folders, key=_name, reverse=True))


def find_run(word: str, harness: Path) -> RunFolder:
    """The run of an id, of the beginning of one, of a folder's path, or `last`.

    Raises: UsageError that lists the newest runs.
    """
    path = Path(word)
    if _is_run(path):
        return RunFolder(path)
    if path.is_file() and _is_run(path.parent):
        return RunFolder(path.parent)
    runs = list_runs(harness)
    if word == "last" and runs:
        return runs[0]
    found = [run for run in runs if run.path.name == word]
    found = found or [
        run for run in runs if len(word) > len("run_") and run.path.name.startswith(word)
    ]
    if len(found) == 1:
        return found[0]
    known = ", ".join(run.path.name for run in runs[:SHOWN]) or "none"
    what = "several runs begin with" if found else "there is no run"
    raise UsageError(f"{what} {word!r} in {harness / 'runs'}; the newest: {known}")


def find_session(session_id: str, harness: Path) -> RunFolder:
    """The run that a session belongs to, by the journals, newest first.

    Raises: UsageError when no journal knows the session.
    """
    for run in list_runs(harness):
        if holds_session(run, session_id):
            return run
    raise UsageError(
        f"there is no session {session_id!r} in the runs under {harness}; "
        "`harness-batch runs` lists them, a run elsewhere is named by its folder"
    )


def holds_session(run: RunFolder, session_id: str) -> bool:
    """Whether the run's journal knows the session. Raises: StorageError."""
    return holds(run, f'"session_id":"{session_id}"'.encode(errors="replace"))


def holds(run: RunFolder, mark: bytes) -> bool:
    """Whether the run's journal holds these bytes. Raises: StorageError."""
    try:
        with run.journal.open("rb") as file:
            if not run.journal.stat().st_size:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return data.find(mark) >= 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(f"cannot read {run.journal}: {error.strerror}") from error


def _name(path: Path) -> str:
    return path.name


def _is_run(path: Path) -> bool:
    return (path / "events.jsonl").is_file() or (path / "run.duckdb").is_file()
