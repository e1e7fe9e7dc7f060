"""The session's supervisor: starts commands for the runner and lets nothing outlive them.

`launcher.py` starts it as a program of its own: standard library only, one thread, the tools'
allow-listed environment, in a sandbox that is already there (bubblewrap) or that it makes by
giving up rights itself (Landlock), or in none. It forks one keeper a command. A keeper is a child
subreaper, so whatever its command leaves behind (daemons, double forks, fork-and-exit chases)
comes back to the keeper and is killed there until the kernel says that no child is left; only then
is the end reported. Two lifelines, both of them sockets to the runner, so that `kill -9` of the
runner cuts them too: the command's channel (its end kills that command's tree) and the
supervisor's own (its end kills everything).

Everything that comes is `SIZE (4 bytes) + marshal(...)`. First the orders, one dictionary (see
`Orders`), answered by `ready` or `error TEXT` on the same socket. Then requests `(argv, folder,
env)`, all bytes, with the descriptors channel, stdout and optionally stderr beside the first byte.
The answer on the channel is one of `exit N`, `crowd N` (ended for too many processes), `error
TEXT`, `survivors`, `unkept` (the keeper was lost), then its end.
"""

import array
import gc
import marshal
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple, TypedDict

from harness_batch.sandbox.crowd import Crowd
from harness_batch.sandbox.giving_up import (
    PR_SET_NO_NEW_PRIVS,
    confine,
    drop_capabilities,
    filter_calls,
    prctl,
    ruleset,
)
from harness_batch.sandbox.reaping import (
    become,
    drain,
    exterminate,
    processes_of,
    reap,
    wait,
    wake_on_child,
)

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RESTORED = (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ)


class Orders(TypedDict):
    """What the supervisor does to itself, or to every command, before it serves."""

    limits: dict[str, int]
    """Most of each: `CORE`, `FSIZE`, `NOFILE`, `DATA`; `NPROC` counts beyond what is there."""
    crowd: int
    """Most processes of all commands together; 0 for any number."""
    capabilities: bool
    """Whether those that it has are kept."""
    filter: bytes
    """A seccomp program; empty for none."""
    rules: tuple[list[bytes], list[bytes], list[bytes]] | None
    """Landlock for the commands: paths to read, to write, to list."""
    proxy: bytes
    """A unix socket that the loopback's relay leads to; empty for none."""


class Request(NamedTuple):
    """One command and the descriptors that came with it."""

    argv: list[bytes]
    folder: bytes
    env: dict[bytes, bytes]
    channel: int
    stdout: int
    stderr: int


def _limit(limits: dict[str, int]) -> None:
    """Generous: against accidents and floods, never in the way of a build."""
    for name, most in limits.items():
        kind: int = getattr(resource, f"RLIMIT_{name}")
        limit = most + processes_of(os.getuid()) if name == "NPROC" else most
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))


def _obey(orders: Orders, control: socket.socket) -> tuple[int | None, set[int]]:
    """Do what is ordered: Landlock's rules, if there are any, and helpers to let live.

    Raises: OSError.
    """
    if sys.platform == "linux":
        prctl(PR_SET_NO_NEW_PRIVS, 1)  # what sudo starts could not be killed
    helpers = {_relay(orders["proxy"], control)} if orders["proxy"] else set[int]()
    _limit(orders["limits"])
    if not orders["capabilities"]:
        drop_capabilities()
    rules = None if orders["rules"] is None else ruleset(*orders["rules"])
    if orders["filter"]:
        filter_calls(orders["filter"])
    return rules, helpers


def _relay(proxy: bytes, control: socket.socket) -> int:
    from harness_batch.sandbox.relay import listening, pass_on  # noqa: PLC0415 - few sessions do

    server = listening()
    relay = os.fork()
    if not relay:
        try:
            control.close()
            become(b"hb-relay")
            pass_on(server, proxy)
        finally:
            os._exit(1)
    server.close()
    return relay


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


def _watch(child: int, channel: int, wake: int, ended: dict[int, int], crowd: Crowd) -> bytes:
    """Return when the command's own process has ended, or its lifeline, or must: the answer."""
    while child not in ended:
        ready = wait(channel, wake, milliseconds=crowd.milliseconds())
        if channel in ready:
            break
        drain(wake)
        reap(ended)
        if crowd.too_many():
            return b"crowd"
    return b"exit"


def _keep(request: Request, rules: int | None, most: int) -> bytes:
    """In the keeper's process: run one command to its end and everything of it with it.

    Landlock begins here: what is killed later is in the same domain, and the supervisor outside.
    """
    become(b"hb-keeper")
    wake = wake_on_child()
    step = "folder"
    try:
        os.chdir(request.folder)
        step = "program"
        if rules is not None:
            confine(rules)
        child = _spawn(request)
    except OSError as error:
        return f"error {step}: {error.strerror}".encode()
    for descriptor in {request.stdout, request.stderr}:
        os.close(descriptor)
    ended: dict[int, int] = {}
    answer = _watch(child, request.channel, wake, ended, Crowd(most))
    if not exterminate(ended):
        return b"survivors"
    return b"%s %d" % (answer, os.waitstatus_to_exitcode(ended[child]))


def _receive(control: socket.socket) -> Request | None:
    """The next request, None when the runner is gone."""
    descriptors = array.array("i")
    head, ancillary, _, _ = control.recvmsg(4, socket.CMSG_SPACE(3 * descriptors.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    body = _body(control, head)
    if not body:
        return None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    argv, folder, env = marshal.loads(body)  # noqa: S302 - from the runner, no one else
    channel, stdout, stderr = (*descriptors, descriptors[-1])[:3]
    return Request(argv, folder, env, channel, stdout, stderr)


def _body(control: socket.socket, head: bytes) -> bytes:
    return control.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if head else b""


def _hire(request: Request, ours: Iterable[int], rules: int | None, most: int) -> int:
    """Fork a keeper for the command; it holds none of `ours`, the supervisor's own descriptors."""
    keeper = os.fork()
    if not keeper:
        try:
            for descriptor in ours:
                os.close(descriptor)
            socket.socket(fileno=request.channel).sendall(_keep(request, rules, most))
            os._exit(0)
        except OSError as error:
            sys.stderr.write(f"harness-batch supervisor: {error}\n")
        finally:
            os._exit(1)
    return keeper


def supervise(control: socket.socket, rules: int | None, helpers: set[int], most: int) -> None:
    """Serve the runner until it closes its end or dies, then kill all that is left."""
    wake, keepers = wake_on_child(), dict[int, int]()
    while True:
        ready = wait(control.fileno(), wake)
        if wake in ready:
            drain(wake)
            _bury(keepers, helpers)
        if control.fileno() in ready:
            request = _receive(control)
            if request is None:
                break
            try:
                ours = (control.fileno(), wake, *keepers.values())
                keepers[_hire(request, ours, rules, most)] = request.channel
            except OSError:
                os.close(request.channel)  # no process to be had: it ends without an answer
            finally:
                for descriptor in {request.stdout, request.stderr}:
                    os.close(descriptor)
    exterminate({})


def _bury(keepers: dict[int, int], helpers: set[int]) -> None:
    """Forget who has ended, and kill what was left to us before anybody hears of the end.

    A keeper stands in its command's reach. One that was killed leaves its orphans here; one that
    was stopped would leave them free, so it is killed.
    """
    ended: dict[int, int] = {}
    reap(ended, kill_stopped=True)
    lost = any(ended.values()) or bool(ended.keys() - keepers.keys())
    helpers -= ended.keys()
    if lost:
        exterminate(ended, spare=(keepers.keys() | helpers) - ended.keys())
    for keeper in keepers.keys() & ended.keys():
        if ended[keeper]:
            with suppress(OSError), socket.socket(fileno=os.dup(keepers[keeper])) as channel:
                channel.sendall(b"unkept")
        os.close(keepers.pop(keeper))


def main(descriptor: int) -> None:
    """The whole life of a supervisor whose runner holds the other end of the descriptor."""
    gc.disable()  # a collection in a fork would copy every page of it
    control = socket.socket(fileno=descriptor)
    become(b"hb-supervisor")
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    body = _body(control, control.recv(4, socket.MSG_WAITALL))
    if body:
        try:
            orders: Orders = marshal.loads(body)  # noqa: S302 - from the runner, no one else
            rules, helpers = _obey(orders, control)
        except OSError as error:
            control.sendall(f"error {error}".encode())
        else:
            control.sendall(b"ready")
            supervise(control, rules, helpers, orders["crowd"])
    os._exit(0)
