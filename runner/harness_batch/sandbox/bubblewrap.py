"""A policy as the command line of bubblewrap, which puts a supervisor into namespaces of its own.

One sandbox a session: the supervisor is process 1 in it (nothing inside can kill or stop it, and
when it ends the kernel ends all the rest), and commands cost no more than without. bubblewrap is
started with an empty environment, since /proc/1/environ shows that, and without
`--die-with-parent`: what it would follow is the thread that started it. The supervisor follows
the runner by its socket.
"""

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness_batch.processes import own_program
from harness_batch.sandbox.policy import Open, Policy, Through, Treatment
from harness_batch.sandbox.view import SYSTEM, parents_first

_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--as-pid-1", "--cap-drop", "ALL", "--hostname", "sandbox"),
)
_DEVICES = ("--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
"""Private ones; as root the kernel's settings would be open for writing."""
_EMPTY = str(Path(__file__).parents[1] / "py.typed")
"""Lies over hidden files: readable and empty, as a device of the host would not be."""
_SCRATCH = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - private in there
_MEMORY = "/dev/shm"  # noqa: S108 - private in there
PROXY = "/tmp/.egress"  # noqa: S108
"""Where the proxy's socket is inside."""


@cache
def program() -> str | None:
    """Bubblewrap's absolute path, None where it is not installed."""
    found = own_program("bwrap", "/usr/bin")
    return found and str(Path(found).resolve())


@cache
def _takes_sizes() -> bool:
    """Older ones cannot bound a folder in memory."""
    said = subprocess.run(
        (program() or "bwrap", "--help"), capture_output=True, env={}, check=False, timeout=10
    )
    return b"--size " in said.stdout + said.stderr


def wrapped(policy: Policy, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command line that runs `argv` in there. `program` must not be None."""
    bwrap = program()
    assert bwrap is not None
    network = () if isinstance(policy.network, Open) else ("--unshare-net",)
    return (bwrap, *_NAMESPACES, *network, *_files(policy), "--chdir", "/", "--", *argv)


def _files(policy: Policy) -> Iterator[str]:
    if policy.view == "host":
        yield from ("--ro-bind", "/", "/")
    else:
        yield from _system()
    yield from _DEVICES
    if _takes_sizes():
        yield from ("--perms", "1777", "--size", str(policy.limits.scratch), "--tmpfs", _MEMORY)
    emptied: list[str] = []
    for path, treatment in parents_first(policy.paths):
        options = tuple(_laid(policy, path, treatment))
        yield from options
        if "--tmpfs" in options and path not in _SCRATCH:
            emptied.append(str(path))
    if isinstance(policy.network, Through):
        yield from ("--ro-bind", str(policy.network.proxy), PROXY)
    if policy.view == "narrow":
        emptied.append("/")
    for place in emptied:
        yield from ("--remount-ro", place)


def _laid(policy: Policy, path: Path, treatment: Treatment) -> Iterator[str]:
    """The options for one path, over what lies above it."""
    place = str(path)
    unseen = _nearest(policy, path.parent) == "hidden"
    match treatment:
        case "hidden" if path in _SCRATCH:
            size = ("--size", str(policy.limits.scratch)) if _takes_sizes() else ()
            yield from ("--perms", "1777", *size, "--tmpfs", place)
        case "hidden" if unseen:
            pass
        case "hidden" if path.is_dir():
            yield from ("--tmpfs", place)
        case "hidden":
            yield from ("--ro-bind", _EMPTY, place)
        case "read" if unseen:
            yield from ("--ro-bind-try", place, place)
        case "read":
            pass
        case "write":
            yield from ("--bind", place, place)
        case "protected":
            yield from ("--ro-bind", place, place)


def _system() -> Iterator[str]:
    for name in SYSTEM:
        folder = Path(name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), name)
        elif folder.exists():
            yield from ("--ro-bind", name, name)


def _nearest(policy: Policy, path: Path) -> Treatment:
    """The treatment of what lies around."""
    for place in (path, *path.parents):
        if place in policy.paths:
            return policy.paths[place]
        if policy.view == "narrow" and str(place) in SYSTEM:
            return "read"
    return "read" if policy.view == "host" else "hidden"
