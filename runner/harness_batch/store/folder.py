"""Where a run keeps its files, who may write them, and how: whole files or none.

`.harness/runs/<run>/` or the folder of `--out`: events.jsonl, run.duckdb, status.json, reports and
`items/<item>/attempt-<n>/`. One process at a time.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from harness_batch.errors import StorageError, UsageError
from harness_batch.messages import JsonObject
from harness_batch.store.disk import new_file, write_all, write_text
from harness_batch.store.lock import try_lock
from harness_batch.store.replay import first_envelope

HARNESS: Final = ".harness"
_IGNORED: Final = """\
# What runs leave behind. agents/, commands/ and skills/ belong into the repository.
/.gitignore
/runs/
/history*
/worktrees/
/cache/
/locks/
/*.lock
"""
_LOCK: Final = "run.lock"
STARTED: Final = "started"
FINISHED: Final = "finished"
"""Marks of a shard: one without the first never began, one without the second died."""
_BALLAST_BYTES: Final = 1 << 20
_ORPHAN_SECONDS: Final = 5.0
"""How long a dead runner's children may still hold its lock."""


def harness_folder(home: Path) -> Path:
    """`.harness/` in the repository (or folder) of the invocation, made when missing.

    Raises: StorageError when it cannot be made.
    """
    folder = home / HARNESS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            write_text(ignore, _IGNORED)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror}") from error
    return folder


@frozen
class AttemptFolder:
    """`items/<item>/attempt-<n>/`: answer, patch, transcript, and whole tool outputs."""

    path: Path

    @property
    def outputs(self) -> Path:
        """Tool output that was too long for the model."""
        return self.path / "outputs"

    @property
    def patch(self) -> Path:
        """What the attempt changed."""
        return self.path / "change.patch"

    @property
    def transcript(self) -> Path:
        """What was said, for people."""
        return self.path / "transcript.md"


@frozen
class RunFolder:
    """The folder of one run. Nothing is read or made by having one."""

    path: Path
    database_name: str = "run.duckdb"

    @classmethod
    def of(cls, harness: Path, run_id: str) -> "RunFolder":
        """The place of a run without `--out`."""
        return cls(harness / "runs" / run_id)

    @property
    def journal(self) -> Path:
        """The truth."""
        return self.path / "events.jsonl"

    @property
    def database(self) -> Path:
        """Made from the journal."""
        return self.path / self.database_name

    @property
    def status(self) -> Path:
        """How far the run is, replaced as it goes on."""
        return self.path / "status.json"

    @property
    def junit(self) -> Path:
        """The JUnit report."""
        return self.path / "junit.xml"

    @property
    def summary(self) -> Path:
        """The Markdown report."""
        return self.path / "summary.md"

    @property
    def html(self) -> Path:
        """The HTML report."""
        return self.path / "report.html"

    @property
    def sarif(self) -> Path:
        """What reviews found, when the run was one."""
        return self.path / "report.sarif"

    @property
    def result(self) -> Path:
        """The JSON report."""
        return self.path / "result.json"

    @property
    def lock_file(self) -> Path:
        """The resolved inputs."""
        return self.path / "lock.json"

    def run_id(self) -> str | None:
        """Of the run whose journal lies here; None when there is none yet. Raises: StorageError."""
        found = first_envelope(self.journal)
        return found[0] if found else None

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """The folder, made when missing, for this process alone while the block runs.

        Raises: UsageError when another process works on it; StorageError when it cannot be made.
        """
        lock = self.path / _LOCK
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"cannot make the folder {self.path}: {error.strerror}") from error
        try:
            _claim(self.path, descriptor)
            yield
        finally:
            os.close(descriptor)

    def mark_started(self) -> None:
        """The first thing that a run leaves, before its journal. Raises: StorageError."""
        write_text(self.path / STARTED, "")
        self._remove(self.path / FINISHED)

    def mark_finished(self) -> None:
        """The last thing that a run leaves: all else is there. Raises: StorageError."""
        write_text(self.path / FINISHED, "")

    def live_view(self) -> "RunFolder":
        """The folder with a database of its own, for readers of a run that goes on."""
        return evolve(self, database_name="live.duckdb")

    def is_running(self) -> bool:
        """Whether another process works in the folder: its database is not ours to replace."""
        try:
            descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            ours = holder == str(os.getpid())
            return not ours and not try_lock(descriptor, "shared")
        finally:
            os.close(descriptor)

    def refuse_other_run(self) -> None:
        """Raises: UsageError when a run lies here already, so that a new one would mix with it."""
        if (run_id := self.run_id()) is not None:
            raise UsageError(
                f"{self.path} holds {run_id} already; continue it with --resume last, "
                "or name another folder with --out"
            )

    def attempt(self, item_folder: str, n: int) -> AttemptFolder:
        """The folder of attempt n (1, 2, ...) of an item, made with its `outputs/`.

        Raises: ValueError when the item's folder is not one path segment; StorageError.
        """
        return self._made(item_folder, f"attempt-{n}")

    def child_attempt(self, item_folder: str, session_id: str, n: int) -> AttemptFolder:
        """The folder of an attempt of a child session of an item; as `attempt`."""
        return self._made(item_folder, "children", session_id, f"attempt-{n}")

    def _made(self, item_folder: str, *below: str) -> AttemptFolder:
        if item_folder in ("", ".", "..") or "/" in item_folder or "\0" in item_folder:
            raise ValueError(f"{item_folder!r} is not the name of a folder")
        folder = AttemptFolder(self.path.joinpath("items", item_folder, *below))
        try:
            folder.outputs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make {folder.outputs}: {error.strerror}") from error
        return folder

    def write_status(self, status: JsonObject) -> None:
        """Readers see the old status or the new one, never half; not synced.

        Raises: StorageError.
        """
        text = json.dumps(status, ensure_ascii=False, default=str, indent=2) + "\n"
        with new_file(self.status) as descriptor:
            write_all(descriptor, text.encode(errors="replace"))

    def hold_ballast(self) -> None:
        """Takes room on the disk that `drop_ballast` gives back. Raises: StorageError."""
        with new_file(self._ballast) as descriptor:
            os.posix_fallocate(descriptor, 0, _BALLAST_BYTES)

    def drop_ballast(self) -> None:
        """Room for the last words of a run whose disk is full. Raises: StorageError."""
        self._remove(self._ballast)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot remove {path}: {error.strerror}") from error

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"


def _claim(folder: Path, descriptor: int) -> None:
    """Takes the lock and writes our pid into it. The kernel frees the lock of a dead process."""
    deadline = time.monotonic() + _ORPHAN_SECONDS
    while not try_lock(descriptor, "exclusive"):
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        if _is_alive(holder) or time.monotonic() > deadline:
            raise UsageError(
                f"another harness-batch (process {holder or 'unknown'}) works in {folder}; "
                "wait for it, or name another folder with --out"
            )
        threading.Event().wait(0.05)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _is_alive(pid: str) -> bool:
    return pid.isdecimal() and Path("/proc", pid).exists()
