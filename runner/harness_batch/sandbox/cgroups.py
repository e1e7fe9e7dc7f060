"""A session's control group: the kernel's own bound on its tasks and memory, which holds for root.

Nothing here ever fails a session: where no group can be made, there is none (`ground` is None).
Version 2 of the kernel's groups gives a group below the runner's own, if "pids" can be handed on
there: a group that holds processes cannot (but for the root), so a runner that has its group for
itself (`systemd-run --user --scope -p Delegate=yes`) moves one level down first. Never a group
beside the runner's: that would leave the bounds that somebody put around the runner. Of version 1
the "pids" hierarchy is used, which knows no such rule.

A group is named for the process that made it. What a killed runner left is swept by the next one.
"""

import os
import secrets
import signal
import subprocess
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from pathlib import Path

import trio
from attrs import frozen

from harness_batch.sandbox.crowd import family_of

PREFIX = "harness-batch-"
OWN = PREFIX + "runner"
"""Where a runner goes that had a group for itself."""
PATIENCE = 200
"""Times 10 ms, for the kernel to let go of a group whose processes have ended."""


@frozen
class Ground:
    """Where sessions get their groups."""

    folder: Path
    bounds_memory: bool


@frozen
class Met:
    """How often the kernel refused a task, and killed for want of memory, in one group."""

    tasks: int = 0
    memory: int = 0


@frozen
class Group:
    """One session's."""

    folder: Path

    def take(self, pids: Collection[int]) -> None:
        """Put these into it. Raises: OSError."""
        for pid in pids:
            with suppress(ProcessLookupError):
                (self.folder / "cgroup.procs").write_text(str(pid))

    def without(self, pids: Collection[int]) -> set[int]:
        """Those of them that are not in it."""
        return set(pids) - set(_processes(self.folder))

    def met(self) -> Met:
        """See `Met`."""
        refused = _counted(self.folder / "pids.events", "max")
        return Met(refused, _counted(self.folder / "memory.events", "oom_kill"))


@cache
def ground() -> Ground | None:
    """The ground of this process, tried with a process of its own; None where there is none."""
    for folder, joined in _hierarchies(Path("/proc/self")):
        place = folder.parent if folder.name == OWN else folder
        found = _prepared(place) if joined else Ground(place, bounds_memory=False)
        if found is not None and _works(found):
            _sweep(found.folder)
            return found
    return None


@asynccontextmanager
async def open_group(here: Ground | None, tasks: int, memory: int) -> AsyncIterator[Group | None]:
    """A group with these bounds (memory in bytes), None where it cannot be; gone at the end."""
    group = None if here is None else _made(here, tasks, memory)
    try:
        yield group
    finally:
        if group is not None:
            with trio.CancelScope(shield=True):
                for _ in range(PATIENCE):
                    if _removed(group.folder):
                        break
                    await trio.sleep(0.01)


def _made(here: Ground, tasks: int, memory: int) -> Group | None:
    folder = here.folder / f"{PREFIX}{_owner(os.getpid())}-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
        (folder / "pids.max").write_text(str(tasks))
        if here.bounds_memory:
            (folder / "memory.max").write_text(str(memory))
    except OSError:
        _removed(folder)
        return None
    return Group(folder)


def _hierarchies(process: Path) -> Iterator[tuple[Path, bool]]:
    """(this process's group, whether it is of version 2) where tasks can be counted."""
    try:
        groups = [line.split(":", 2) for line in (process / "cgroup").read_text().splitlines()]
        mounts = [line.split(" ") for line in (process / "mountinfo").read_text().splitlines()]
    except OSError:
        return
    for root, mounted, kind, options in _mounted(mounts):
        for _, controllers, path in groups:
            joined = kind == "cgroup2" and not controllers
            counted = kind == "cgroup" and "pids" in controllers.split(",") and "pids" in options
            inside = Path(path)
            if (joined or counted) and ".." not in inside.parts and inside.is_relative_to(root):
                yield Path(mounted) / inside.relative_to(root), joined


def _mounted(mounts: list[list[str]]) -> Iterator[tuple[str, str, str, list[str]]]:
    """(root, place, kind, options) of file systems of groups; see proc_pid_mountinfo(5)."""
    for words in mounts:
        kind, _, options = words[words.index("-") + 1 :][:3]
        if kind in {"cgroup", "cgroup2"}:
            yield words[3], words[4], kind, options.split(",")


def _prepared(folder: Path) -> Ground | None:
    """A group of version 2 with what can be had of tasks and memory handed on to those below."""
    have = _words(folder / "cgroup.controllers")
    if "pids" not in have or not os.access(folder, os.W_OK):
        return None
    wanted = ("pids", "memory") if "memory" in have else ("pids",)
    on = folder / "cgroup.subtree_control"
    for prepare in (_nothing, _move_down):
        try:
            if not set(wanted) <= _words(on):
                prepare(folder)
                on.write_text(" ".join(f"+{name}" for name in wanted))
            return Ground(folder, bounds_memory="memory" in wanted)
        except OSError:
            continue
    return None


def _nothing(folder: Path) -> None:
    """To do before the first attempt."""


def _move_down(folder: Path) -> None:
    """Leave a group that this process and its children have for themselves. Raises: OSError."""
    inside = _processes(folder)
    if not set(inside) <= family_of(os.getpid()):
        raise PermissionError("others are in it")
    below = folder / OWN
    below.mkdir(exist_ok=True)
    for pid in inside:
        with suppress(ProcessLookupError):
            (below / "cgroup.procs").write_text(str(pid))


def _works(here: Ground) -> bool:
    """Whether a process can be put into such a group; one that ends when its input does."""
    group = _made(here, tasks=64, memory=1 << 30)
    if group is None:
        return False
    with _victim() as pid:
        try:
            group.take((pid,))
            works = pid in _processes(group.folder)
        except OSError:
            works = False
    _removed(group.folder)
    return works


@contextmanager
def _victim() -> Iterator[int]:
    with subprocess.Popen(("cat",), stdin=subprocess.PIPE, env={"PATH": os.defpath}) as process:
        yield process.pid
        process.kill()


def _sweep(folder: Path) -> None:
    """Remove what runners left that are no more; those of other namespaces nobody can judge."""
    for place in folder.glob(f"{PREFIX}*-*-*-*"):
        space, pid, since = place.name.removeprefix(PREFIX).split("-")[:3]
        alive = pid.isdigit() and _owner(int(pid)) == f"{space}-{pid}-{since}"
        if space == _owner(os.getpid()).partition("-")[0] and not alive:
            _removed(place)


def _owner(pid: int) -> str:
    """A process as no other is called: namespace, number, time of its start. Empty: no such."""
    try:
        space = Path("/proc/self/ns/pid").stat().st_ino
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return f"{space}-{pid}-{told.rpartition(')')[2].split()[19]}"


def _removed(folder: Path) -> bool:
    """Kill what is in it; whether it is gone."""
    for pid in _processes(folder):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL) if pid else None
    with suppress(OSError):
        (folder / "cgroup.kill").write_text("1")
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _processes(folder: Path) -> list[int]:
    return [int(word) for word in _words(folder / "cgroup.procs")]


def _counted(file: Path, name: str) -> int:
    for line in _lines(file):
        key, _, number = line.partition(" ")
        if key == name:
            return int(number)
    return 0


def _words(file: Path) -> set[str]:
    return {word for line in _lines(file) for word in line.split()}


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
