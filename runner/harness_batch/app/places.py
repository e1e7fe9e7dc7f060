"""Where things lie: `.harness/` of the invocation, a run's folder, the history, the cache."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from harness_batch.app.options import RunOptions
from harness_batch.errors import GitError, StorageError, UsageError
from harness_batch.ids import new_id
from harness_batch.store.folder import RunFolder, harness_folder
from harness_batch.store.runs import find_run
from harness_batch.workspace.repository import discover


def home_of(cwd: Path) -> Path:
    """The top of the repository of the invocation, else the current folder."""
    try:
        repository = discover(cwd)
    except GitError:
        return cwd
    return cwd if repository.bare else repository.path


def harness_of(cwd: Path) -> Path:
    """`.harness/`, made when missing. Raises: StorageError."""
    return harness_folder(home_of(cwd))


def run_folder(options: RunOptions, cwd: Path) -> tuple[RunFolder, str | None]:
    """The folder to run in, and words on a resume that had nothing to resume.

    Raises: UsageError for a run that is not there, or a folder that holds another run.
    """
    if options.out is not None:
        return _out_folder(options, cwd / options.out)
    harness = harness_of(cwd)
    fresh = RunFolder.of(harness, new_id("run"))
    if options.resume is None:
        return fresh, None
    try:
        return find_run(options.resume, harness), None
    except UsageError:
        if options.resume != "last":
            raise
        return fresh, "there is no run to resume; starting a new one"


def _out_folder(options: RunOptions, out: Path) -> tuple[RunFolder, str | None]:
    folder = RunFolder(out)
    if options.resume is None:
        folder.refuse_other_run()
        return folder, None
    if options.resume not in ("last", folder.run_id()):
        raise UsageError(f"--resume {options.resume}: {out} does not hold that run")
    if folder.run_id() is None:
        return folder, f"{out} holds no run to resume; starting a new one"
    return folder, None


def history_of(options_db: Path | None, cwd: Path) -> Path:
    """The history's file, made by the first merge."""
    return cwd / options_db if options_db is not None else harness_of(cwd) / "history.duckdb"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """The user's cache folder (XDG); where there is none to write to, a private one for the time.

    Raises: StorageError when there is no place at all.
    """
    users = _users_cache(environ)
    if users is not None and _is_usable(users):
        return users
    own = Path(tempfile.gettempdir(), f"harness-batch-{os.getuid()}")
    with suppress(OSError):
        own.mkdir(mode=0o700, exist_ok=True)
        if not own.is_symlink() and own.stat().st_uid == os.getuid() and _is_usable(own):
            return own
    raise StorageError(f"no folder for work trees can be made, neither in {users} nor as {own}")


def _users_cache(environ: Mapping[str, str]) -> Path | None:
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base)
    if home := environ.get("HOME"):
        return Path(home, ".cache")
    return None


def _is_usable(cache: Path) -> bool:
    place = cache / "harness-batch"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(place, os.W_OK | os.X_OK)
