"""What bounds all commands of a session together: how it is put in force, met and told.

Processes are looked at by the keepers (crowd.py), on Linux everywhere. Tasks (processes and
threads) and memory are bounded by the kernel where a control group can be made (cgroups.py); else
tasks by RLIMIT_NPROC, which does not count those of root, and memory by nothing.
"""

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from threading import Thread

import trio
from attrs import frozen

from harness_batch.sandbox.cgroups import Ground, Group, Met, ground, open_group
from harness_batch.sandbox.crowd import family_of
from harness_batch.sandbox.policy import GIB, Limits

ROUNDS = 5
"""Who is born of one that is in the group is in it: each round finds one generation less."""
Finding = Callable[[], Ground | None]


@frozen
class Bound:
    """At most so much (bytes, numbers), and what holds it; None where nothing does."""

    most: int
    by: str | None

    def told(self, name: str) -> str:
        """For people: "at most 512 (watch)"."""
        if self.by is None:
            return "not bounded for all commands together on this host"
        most = f"{self.most / GIB:.3g} GiB" if name == "memory" else str(self.most)
        return f"at most {most} ({self.by})"


@frozen
class Bounds:
    """One session's."""

    limits: Limits
    group: Group | None

    def begin(self, pid: int) -> Thread | None:
        """Put a process into the group, in a thread as the kernel may wait ten milliseconds."""
        if self.group is None:
            return None
        moving = Thread(target=_put, args=(self.group, pid), daemon=True)
        moving.start()
        return moving

    async def hold(self, pid: int, moving: Thread | None) -> None:
        """Return when that process and its descendants are in the group."""
        if moving is not None and moving.is_alive():
            await trio.to_thread.run_sync(moving.join)
        if self.group is not None and self.group.without(family_of(pid)):
            await trio.to_thread.run_sync(_put, self.group, pid)

    def met(self) -> Met:
        """How often so far."""
        return Met() if self.group is None else self.group.met()

    def told(self, answer: bytes, before: Met) -> str:
        """What a command met, by the keeper's answer and the count at its start; or nothing."""
        now = self.met()
        if answer.startswith(b"crowd "):
            return f"ended by the sandbox: more than {self.limits.processes} processes"
        if now.memory > before.memory:
            size = f"{self.limits.memory / GIB:.3g} GiB"
            return f"killed by the sandbox: more than {size} of memory in use"
        if now.tasks > before.tasks:
            return f"the sandbox refused more than {self.limits.tasks} processes and threads"
        return ""


def _put(group: Group, pid: int) -> None:
    """With its descendants, some of which are born meanwhile. Failing is no reason to fail."""
    with suppress(OSError):
        for _ in range(ROUNDS):
            if not (outside := group.without(family_of(pid))):
                break
            group.take(outside)


@asynccontextmanager
async def open_bounds(limits: Limits, find: Finding = ground) -> AsyncIterator[Bounds]:
    """Those of a session, with a group if one can be made where `find` says."""
    async with open_group(find(), limits.tasks, limits.memory) as group:
        yield Bounds(limits, group)


def in_force(limits: Limits, find: Finding = ground) -> Mapping[str, Bound]:
    """What holds for a session on this host."""
    here = find()
    counted = "limit of the user" if os.geteuid() else None
    return {
        "processes": Bound(limits.processes, "watch" if sys.platform == "linux" else None),
        "tasks": Bound(limits.tasks, counted if here is None else "cgroup"),
        "memory": Bound(limits.memory, "cgroup" if here and here.bounds_memory else None),
    }
