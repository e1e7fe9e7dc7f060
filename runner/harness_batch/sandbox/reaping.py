"""Nothing outlives its command: children are found, killed and waited for until none is left.

Standard library only, one thread: it runs in the supervisor and in the keepers that it forks.
Linux; elsewhere only the command's process group is killed.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterable

PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 4, 15, 36
KILL_SECONDS = 5.0
"""A process that is still there after that many seconds of SIGKILL hangs in the kernel."""
LIBC = ctypes.CDLL(None)


def become(name: bytes) -> None:
    """Make this process a reaper that cannot be dumped or traced by its own kind."""
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        LIBC.prctl(PR_SET_NAME, name, 0, 0, 0)


def wake_on_child() -> int:
    """A descriptor that becomes readable whenever a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def drain(descriptor: int) -> None:
    """Read what lies there and throw it away."""
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def wait(*descriptors: int, milliseconds: int | None = None) -> set[int]:
    """Those that have become readable, or have ended."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(milliseconds)}


def reap(ended: dict[int, int], *, kill_stopped: bool = False) -> bool:
    """Put every ended child's wait status into `ended`; False when no child is left at all."""
    options = os.WNOHANG | (os.WUNTRACED if kill_stopped else 0)
    try:
        while True:
            pid, status = os.waitpid(-1, options)
            if not pid:
                return True
            if os.WIFSTOPPED(status):
                os.kill(pid, signal.SIGKILL)
            else:
                ended[pid] = status
    except ChildProcessError:
        return False


def exterminate(ended: dict[int, int], spare: Iterable[int] = ()) -> bool:
    """Kill all descendants but `spare` and theirs; False when some cannot be killed in time.

    The children are the target, again and again: whose parent dies becomes our child, so a chain
    that forks and exits always has a link in sight. The whole tree is looked at now and then, for
    trees that grow faster than they are peeled.
    """
    deadline = time.monotonic() + KILL_SECONDS
    before: set[int] = set()
    spared, rounds = set(spare), 0
    while reap(ended) and time.monotonic() < deadline:
        targets = children_of(os.getpid()) - spared
        if spared and not targets:
            return True
        known, before = targets <= before, targets
        if rounds % 8 == 0:
            targets = _descendants(targets)
        for pid in targets:
            _kill(pid)
        if known and rounds > 3:
            wait(milliseconds=1 if rounds < 100 else 20)
        rounds += 1
    return not reap(ended)


def processes_of(user: int) -> int:
    """How many processes and threads that user has, as far as they can be seen."""
    return sum(_threads(pid) for pid, _ in _parents() if _owner(pid) == user)


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 1


def children_of(pid: int) -> set[int]:
    """Children; orphans among a reaper's descendants become such at once."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as listing:
            return {int(word) for word in listing.read().split()}
    except OSError:
        return {child for child, parent in _parents() if parent == pid}


def _parents() -> Iterable[tuple[int, int]]:
    """(process, parent) of every process there is."""
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    yield int(name), int(stat.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue


def _descendants(roots: set[int]) -> set[int]:
    families: dict[int, list[int]] = {}
    for pid, parent in _parents():
        families.setdefault(parent, []).append(pid)
    found, queue = set(roots), list(roots)
    while queue:
        young = [pid for pid in families.get(queue.pop(), ()) if pid not in found]
        found.update(young)
        queue.extend(young)
    return found


def _kill(pid: int) -> None:
    """With its whole group, which was born below the command: no fork slips through that."""
    try:
        group = os.getpgid(pid)
        if group != os.getpgrp():
            os.killpg(group, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
