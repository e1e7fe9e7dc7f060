"""The session's supervisor: starts commands for the runner and lets nothing outlive them.

`plain.py` runs this file as a script of its own: standard library only, one thread, started with
the tools' allow-listed environment. It forks one keeper a command. A keeper is a child subreaper,
so whatever its command leaves behind (daemons, double forks, fork-and-exit chases) comes back to
the keeper and is killed there until the kernel says that no child is left; only then is the end
reported. Two lifelines, both of them sockets to the runner, so that `kill -9` of the runner cuts
them too: the command's channel (its end kills that command's tree) and the supervisor's own (its
end kills everything). Linux; elsewhere only the command's process group is killed.

A request is `SIZE (4 bytes) + marshal((argv, folder, env))`, all bytes, with the descriptors
channel, stdout and optionally stderr beside the first byte. The answer on the channel is one of
`exit N`, `error TEXT`, `survivors`, then its end.
"""

import array
import ctypes
import gc
import marshal
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 15, 36, 38
KILL_SECONDS = 5.0
"""A process that is still there after that many seconds of SIGKILL hangs in the kernel."""
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RESTORED = (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ)
GIB = 1 << 30
LIBC = ctypes.CDLL(None)


class Request(NamedTuple):
    """One command and the descriptors that came with it."""

    argv: list[bytes]
    folder: bytes
    env: dict[bytes, bytes]
    channel: int
    stdout: int
    stderr: int


def _prctl(option: int, value: int | bytes) -> None:
    if sys.platform == "linux":
        LIBC.prctl(option, value, 0, 0, 0)


def _become(name: bytes) -> None:
    """Make this process a reaper that cannot be dumped or traced by its own kind."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NAME, name)


def _wake_on_child() -> int:
    """A descriptor that becomes readable whenever a child has ended."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def _wait(*descriptors: int, milliseconds: int | None = None) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(milliseconds)}


def _reap(ended: dict[int, int]) -> bool:
    """Put every ended child's wait status into `ended`; False when no child is left at all."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return True
            ended[pid] = status
    except ChildProcessError:
        return False


def _children() -> set[int]:
    """Own children; orphans among the descendants are such at once, that is what reapers get."""
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as listing:  # noqa: PTH123
            return {int(word) for word in listing.read().split()}
    except OSError:
        return {child for child, parent in _parents() if parent == pid}


def _parents() -> Iterable[tuple[int, int]]:
    """(process, parent) of every process there is."""
    for name in os.listdir("/proc") if sys.platform == "linux" else ():  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123
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


def _exterminate(ended: dict[int, int], spare: Iterable[int] = ()) -> bool:
    """Kill all descendants but `spare` and theirs; False when some cannot be killed in time.

    The children are the target, again and again: whose parent dies becomes our child, so a chain
    that forks and exits always has a link in sight. The whole tree is looked at now and then, for
    trees that grow faster than they are peeled.
    """
    deadline = time.monotonic() + KILL_SECONDS
    before: set[int] = set()
    spared, rounds = set(spare), 0
    while _reap(ended) and time.monotonic() < deadline:
        targets = _children() - spared
        if spared and not targets:
            return True
        known, before = targets <= before, targets
        if rounds % 8 == 0:
            targets = _descendants(targets)
        for pid in targets:
            _kill(pid)
        if known and rounds > 3:
            _wait(milliseconds=1 if rounds < 100 else 20)
        rounds += 1
    return not _reap(ended)


def _limit() -> None:
    """Generous: against accidents and floods, never in the way of a build."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 16 * GIB),
        (resource.RLIMIT_NOFILE, 8192),
        (resource.RLIMIT_DATA, max(8 * GIB, memory)),  # AS would kill Java and Node
    ):
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (limit, limit))


def _spawn(request: Request) -> int:
    """Start the command, in a session of its own; limits and folder are inherited from here.

    posix_spawn, since a second fork would cost more than all the rest. Raises: OSError.
    """
    os.environb[b"PATH"] = request.env.get(b"PATH", os.fsencode(os.defpath))
    return os.posix_spawnp(
        request.argv[0],
        request.argv,
        request.env,
        file_actions=(
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, request.stdout, 1),
            (os.POSIX_SPAWN_DUP2, request.stderr, 2),
        ),
        setsid=True,
        setsigmask=(),
        setsigdef=RESTORED,
    )


def _watch(child: int, channel: int, wake: int, ended: dict[int, int]) -> None:
    """Return when the command's own process has ended, or its lifeline."""
    while child not in ended:
        ready = _wait(channel, wake)
        if channel in ready:
            return
        _drain(wake)
        _reap(ended)


def _keep(request: Request) -> bytes:
    """In the keeper's process: run one command to its end and everything of it with it."""
    _become(b"hb-keeper")
    wake = _wake_on_child()
    step = "folder"
    try:
        os.chdir(request.folder)
        step = "program"
        child = _spawn(request)
    except OSError as error:
        return f"error {step}: {error.strerror}".encode()
    for descriptor in {request.stdout, request.stderr}:
        os.close(descriptor)
    ended: dict[int, int] = {}
    _watch(child, request.channel, wake, ended)
    if not _exterminate(ended):
        return b"survivors"
    return b"exit %d" % os.waitstatus_to_exitcode(ended[child])


def _receive(control: socket.socket) -> Request | None:
    """The next request, None when the runner is gone."""
    descriptors = array.array("i")
    head, ancillary, _, _ = control.recvmsg(4, socket.CMSG_SPACE(3 * descriptors.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    body = control.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if head else b""
    if not body:
        return None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    argv, folder, env = marshal.loads(body)  # noqa: S302 - from the runner, no one else
    channel, stdout, stderr = (*descriptors, descriptors[-1])[:3]
    return Request(argv, folder, env, channel, stdout, stderr)


def _hire(request: Request, control: socket.socket, wake: int) -> int:
    """Fork a keeper for the command; it holds none of the supervisor's own descriptors."""
    keeper = os.fork()
    if not keeper:
        try:
            control.close()
            os.close(wake)
            socket.socket(fileno=request.channel).sendall(_keep(request))
            os._exit(0)
        except OSError as error:
            sys.stderr.write(f"harness-batch supervisor: {error}\n")
        finally:
            os._exit(1)
    return keeper


def supervise(control: socket.socket) -> None:
    """Serve the runner until it closes its end or dies, then kill all that is left."""
    gc.disable()  # a collection in a fork would copy every page of it
    _become(b"hb-supervisor")
    _prctl(PR_SET_NO_NEW_PRIVS, 1)  # what sudo starts could not be killed
    _limit()
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    wake, keepers = _wake_on_child(), set[int]()
    while True:
        ready = _wait(control.fileno(), wake)
        ended: dict[int, int] = {}
        if wake in ready:
            _drain(wake)
            _reap(ended)
            if any(ended.values()) or ended.keys() - keepers:  # a keeper's orphans came to us
                _exterminate(ended, spare=keepers - ended.keys())
            keepers -= ended.keys()
        if control.fileno() in ready:
            request = _receive(control)
            if request is None:
                break
            try:
                keepers.add(_hire(request, control, wake))
            except OSError:
                pass  # no process to be had: the runner sees the channel end without an answer
            finally:
                for descriptor in {request.channel, request.stdout, request.stderr}:
                    os.close(descriptor)
    _exterminate({})


if __name__ == "__main__":
    supervise(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)
