"""Whose session folder this is, and the sweep of folders whose runner died.

A living runner holds a lock on the owner file; the kernel drops it with the process, also after
kill -9, and across containers that share the cache. Process id and start time stand in the file
too, for file systems without locks.
"""

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import trio
from attrs import asdict, frozen

from harness_batch.workspace.removal import remove_folder

OWNER_FILE = "owner.json"
TMP_PREFIX = "hb-"
UNCLAIMED_SECONDS = 600.0
"""A folder without an owner file is one in the making until it is that old."""


@frozen(kw_only=True)
class Owner:
    """Content of the owner file."""

    run_id: str
    pid: int
    started: str
    """Start time of the process in clock ticks since boot, with the boot's id."""
    tmp: str
    """The session's TMPDIR, which lies elsewhere."""
    exempt: bool
    """The sweep leaves the folder alone: its run can be resumed, or the user keeps it."""


def worktrees_folder(cache: Path) -> Path:
    """Where the session folders lie: `<cache>/harness-batch/worktrees/<run>/<session>`."""
    return cache / "harness-batch" / "worktrees"


@contextmanager
def claimed(folder: Path, tmp: Path, *, exempt: bool) -> Iterator[None]:
    """Own a session's folder, which exists, for as long as the block runs."""
    owner = Owner(
        run_id=folder.parent.name,
        pid=os.getpid(),
        started=_started(os.getpid()),
        tmp=str(tmp),
        exempt=exempt,
    )
    unfinished = folder / f"{OWNER_FILE}.new"
    with unfinished.open("w") as file:
        _lock(file.fileno())
        json.dump(asdict(owner), file)
        file.flush()
        unfinished.rename(folder / OWNER_FILE)  # never to be seen without its lock and content
        yield


async def sweep_stale(cache: Path) -> tuple[str, ...]:
    """Remove what dead runs left under the cache folder; what went wrong, in words for a notice."""
    return await trio.to_thread.run_sync(_sweep, worktrees_folder(cache))


def _sweep(worktrees: Path) -> tuple[str, ...]:
    troubles: list[str] = []
    for run in _folders(worktrees):
        for session in _folders(run):
            if is_stale(session):
                troubles.extend(remove_session(session))
        with suppress(OSError):  # somebody lives there
            run.rmdir()
    return tuple(troubles)


def _folders(place: Path) -> list[Path]:
    try:
        return sorted(p for p in place.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError:
        return []


def is_stale(session: Path) -> bool:
    """Whether the runner that owned the folder is dead and nobody is to have it again."""
    file = session / OWNER_FILE
    try:
        if not file.exists():
            return time.time() - session.stat().st_mtime > UNCLAIMED_SECONDS
        with file.open() as lock:
            if not _lock(lock.fileno()):
                return False
            owner = _read(lock.read())
    except OSError:
        return False
    if owner is None:
        return True
    return not owner.exempt and _started(owner.pid) != owner.started


def remove_session(session: Path) -> tuple[str, ...]:
    """Remove a session's folder and its TMPDIR; what went wrong, in words. Blocking.

    The owner file goes last: what is cut off here the next sweep takes up.
    """
    troubles: list[str] = []
    try:
        owner = _read((session / OWNER_FILE).read_text())
    except OSError:
        owner = None
    if owner is not None:
        troubles.extend(_remove_tmp(Path(owner.tmp)))
    for place in _folders(session):
        troubles.extend(remove_folder(place))
    return (*troubles, *remove_folder(session))


def _remove_tmp(tmp: Path) -> tuple[str, ...]:
    """Remove a session's TMPDIR. Its name may come from a file an agent could write: be picky."""
    ours = tmp.parent == Path(tempfile.gettempdir()) and tmp.name.startswith(TMP_PREFIX)
    return remove_folder(tmp) if ours else ()


def _read(text: str) -> Owner | None:
    try:
        return Owner(**json.loads(text))
    except (ValueError, TypeError):
        return None  # the runner never wrote this


def _lock(descriptor: int) -> bool:
    """False when a living process holds it; True also where the file system knows no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _started(pid: int) -> str:
    """Empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return f"{boot} {stat.rpartition(')')[2].split()[19]}"
