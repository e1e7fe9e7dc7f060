"""A program of its own: tries to break out of the sandbox it runs in, and says where it could.

`probe.py` runs it as a command of an agent would run, tells it in JSON what there is to attack,
and looks from outside at what has come of it. Standard library only. It prints one JSON object:
property -> the attack that succeeded.
"""

import fcntl
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator

Target = dict[str, str]
Attack = tuple[str, str, Callable[[], object]]


def attacks(target: Target) -> Iterator[Attack]:
    """(property, what is tried, how); one that returns without an OSError has succeeded."""
    outside, token = target["outside"], target["token"]
    tcp, victim = int(target["tcp"]), int(target["victim"])
    yield "write-confined", "wrote to a file outside", lambda: _append(f"{outside}/file")
    yield "write-confined", "made a file outside", lambda: _append(f"{outside}/new")
    yield "write-confined", "removed a file outside", lambda: os.unlink(f"{outside}/doomed")
    for path in filter(None, target["planted"].split("\0")):
        yield "write-confined", f"made {path}", lambda path=path: _plant(path)  # type: ignore[misc]
    yield "metadata-confined", "changed a file's mode", lambda: os.chmod(f"{outside}/file", 0o777)
    yield "metadata-confined", "changed a file's time", lambda: os.utime(f"{outside}/file", (1, 1))
    yield "read-confined", "read a file outside", lambda: _read(f"{outside}/file")
    yield "net-none", "opened a connection", lambda: _connect(socket.AF_INET, ("127.0.0.1", tcp))
    yield "net-none", "sent a datagram", lambda: _send(int(target["udp"]), token)
    yield "unix-none", "reached a unix socket", lambda: _connect(socket.AF_UNIX, target["unix"])
    yield (
        "unix-none",
        "reached an abstract socket",
        lambda: _connect(socket.AF_UNIX, f"\0{token}"),
    )
    yield "signal-confined", "signalled a process outside", lambda: _signal(victim)
    yield "secrets-hidden", "read a process's environment", lambda: _environments(token)
    for path in filter(None, target["hidden"].split("\0")):
        yield "secrets-hidden", f"read {path}", lambda path=path: _read_any(path)  # type: ignore[misc]
    yield "git-file-protected", "replaced .git", lambda: os.rename(".git", ".git2")
    yield "git-file-protected", "wrote to .git", lambda: _append(".git")
    yield "git-file-protected", "removed .git", lambda: os.unlink(".git")


def _append(path: str) -> None:
    with open(path, "a") as file:
        file.write("canary")


def _plant(path: str) -> None:
    """The folder may be a private one in here; whether the file is there is seen from outside."""
    _append(path)
    raise PermissionError


def _read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def _read_any(path: str) -> None:
    """Something of it, be it a file or a folder; what is empty has nothing to tell."""
    if os.path.isdir(path):
        found = [f"{path}/{name}" for name in os.listdir(path)]
        files = [name for name in found if os.path.isfile(name)]
    else:
        files = [path]
    for name in files[:8]:
        with open(name, "rb") as file:
            if file.read(1):
                return
    raise PermissionError


def _connect(family: int, address: object) -> None:
    with socket.socket(family) as client:
        client.settimeout(0.5)
        client.connect(address)  # type: ignore[arg-type]


def _send(port: int, token: str) -> None:
    """Whether it arrives is seen from outside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(token.encode(), ("127.0.0.1", port))
    raise PermissionError


def _signal(victim: int) -> None:
    """The number may mean another process in here; whether the right one died is seen outside."""
    if victim not in (os.getpid(), os.getppid(), 1):
        os.kill(victim, signal.SIGKILL)
    raise PermissionError


def _environments(token: str) -> None:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if token.encode() in file.read():
                        return
            except OSError:
                continue
    raise PermissionError


def _daemon(lock: str) -> None:
    """By the book: a session of its own, a double fork, the output closed; it holds the lock."""
    held = os.open(lock, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            signal.pause()
        os._exit(0)
    os.wait()


def _has_loopback() -> bool:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), 1),
        ):
            return True
    except OSError:
        return False


def _proxy_answers(port: str) -> bool:
    """The way through the proxy is there, and it does not let just anything through."""
    try:
        with socket.create_connection(("127.0.0.1", int(port)), 3) as client:
            client.sendall(b"CONNECT not-allowed.invalid:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = client.recv(64)
    except OSError:
        return False
    return answer.startswith(b"HTTP/1.") and answer[9:10] in b"45"


def main(target: Target) -> None:
    """Try everything once."""
    broken: dict[str, str] = {}
    for name, what, attack in () if target["only"] else attacks(target):
        try:
            attack()
        except OSError:
            continue
        broken.setdefault(name, what)
    if not _has_loopback():
        broken["loopback"] = "could not talk to itself"
    if not target["proxy"]:
        broken["egress-allowlist"] = "had no proxy to go through"
    elif not _proxy_answers(target["proxy"]):
        broken["egress-allowlist"] = "could not reach the proxy"
    try:
        _append("writable")
    except OSError:
        broken["writable"] = "could not write to the workspace"
    _daemon(target["lock"])
    print(json.dumps(broken))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
