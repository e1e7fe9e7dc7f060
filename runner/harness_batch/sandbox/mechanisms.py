"""The ways to contain a session's commands, strongest first, and what each makes of a policy.

bubblewrap    namespaces: files, network, processes; a seccomp filter on top
landlock      rules on files and signals, the same filter, no capabilities; no loopback
plain         no containment: what is started is killed in the end, and that is all
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from attrs import Factory, frozen

from harness_batch.errors import SandboxError
from harness_batch.sandbox import bubblewrap, giving_up, relay, syscall_filter
from harness_batch.sandbox.policy import Closed, Limits, Policy, Through, Treatment
from harness_batch.sandbox.supervisor import Orders
from harness_batch.sandbox.view import SYSTEM, readable_beside

Mechanism = Literal["bubblewrap", "landlock", "plain"]
MECHANISMS: tuple[Mechanism, ...] = ("bubblewrap", "landlock", "plain")

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from harness_batch.sandbox.supervisor import main; main(int(sys.argv[2]))"
)
_PACKAGE = str(Path(__file__).parents[2])
_SUPERVISOR = (sys.executable, "-I", "-S", "-c", _BOOT, _PACKAGE)
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))


@frozen(kw_only=True)
class Beginning:
    """How a session's supervisor is started, and what it is ordered to do first."""

    argv: tuple[str, ...]
    orders: Orders
    env: Mapping[str, str]
    """Of the supervisor itself."""
    more: Mapping[str, str] = Factory(dict)
    """Added to the environment of the commands."""


def lacking(mechanism: Mechanism) -> str | None:
    """Why this host cannot even try it, in words for people; None when it can."""
    match mechanism:
        case "plain":
            return None
        case _ if sys.platform != "linux":
            return "it needs Linux"
        case _ if not syscall_filter.is_known():
            return f"the system calls of {os.uname().machine} are not known here"
        case "bubblewrap":
            return None if bubblewrap.program() else "bubblewrap (`bwrap`) is not installed"
        case "landlock":
            return None if giving_up.landlock_abi() else "the kernel does not have Landlock"


def beginning(policy: Policy, mechanism: Mechanism) -> Beginning:
    """What the mechanism makes of the policy. Raises: SandboxError where it cannot."""
    match mechanism:
        case "bubblewrap":
            return _bubblewrapped(policy)
        case "landlock":
            return _landlocked(policy)
        case "plain":
            orders = _orders(policy.limits)
            return Beginning(argv=_SUPERVISOR, orders=orders, env=dict(policy.env))


def _bubblewrapped(policy: Policy) -> Beginning:
    if (why := lacking("bubblewrap")) is not None:
        raise SandboxError(why)
    orders = _orders(
        policy.limits, calls=syscall_filter.program(syscall_filter.INTERNET, own_ipc=True)
    )
    more: dict[str, str] = {}
    if isinstance(policy.network, Through):
        orders["proxy"] = os.fsencode(bubblewrap.PROXY)
        more = _proxied()
    return Beginning(argv=bubblewrap.wrapped(policy, _SUPERVISOR), orders=orders, env={}, more=more)


def _landlocked(policy: Policy) -> Beginning:
    if (why := lacking("landlock")) is not None:
        raise SandboxError(why)
    if isinstance(policy.network, Through):
        raise SandboxError("Landlock cannot let single hosts through; that needs bubblewrap")
    families = () if isinstance(policy.network, Closed) else syscall_filter.INTERNET
    orders = _orders(policy.limits, calls=syscall_filter.program(families, own_ipc=False))
    orders["capabilities"] = False
    _refuse_hidden_in_writable(policy)
    # Disks, terminals and shared memory of the host are no less readable than files.
    paths: dict[Path, Treatment] = {Path("/dev"): "hidden", **policy.paths}
    tops = ("/",) if policy.view == "host" else (*SYSTEM, "/proc", "/sys")
    readable = list(readable_beside(paths, map(Path, tops)))
    read = [os.fsencode(path) for path, whole in readable if whole]
    listed = [b"/dev", *(os.fsencode(path) for path, whole in readable if not whole)]
    write = [os.fsencode(path) for path, how in policy.paths.items() if how == "write"]
    orders["rules"] = (read, [*write, *map(os.fsencode, _DEVICES)], listed)
    return Beginning(argv=_SUPERVISOR, orders=orders, env=dict(policy.env))


def _refuse_hidden_in_writable(policy: Policy) -> None:
    """Raises: SandboxError. Landlock can only add rights to those of the folders above."""
    write = {path for path, how in policy.paths.items() if how == "write"}
    for path, how in policy.paths.items():
        if how == "hidden" and (above := write.intersection(path.parents)):
            raise SandboxError(
                f"Landlock cannot hide {str(path)!r} from who may write to {str(min(above))!r}; "
                "that needs bubblewrap, or a narrower folder"
            )


def _orders(limits: Limits, *, calls: bytes = b"") -> Orders:
    return Orders(
        limits={
            "CORE": 0,
            "FSIZE": limits.file,
            "NOFILE": limits.open_files,
            "DATA": limits.data,
            "NPROC": limits.tasks,
        },
        crowd=limits.processes,
        capabilities=True,
        filter=calls,
        rules=None,
        proxy=b"",
    )


def _proxied() -> dict[str, str]:
    """What programs know a proxy by."""
    address = f"http://127.0.0.1:{relay.PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    beside = "localhost,127.0.0.1,::1"
    return {**dict.fromkeys(names, address), "NO_PROXY": beside, "no_proxy": beside}
