"""Which of the containment properties hold on this host; proven by attacks, never assumed.

A canary (canary.py) runs through the real launcher and tries to break out; what it attacks is set
up here, and what it says is held against what is seen from outside. Nothing waits: every attack
has succeeded or failed when its command is over.
"""

import fcntl
import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen

from harness_batch.errors import SandboxError
from harness_batch.processes import Command
from harness_batch.sandbox import canary
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.mechanisms import Mechanism
from harness_batch.sandbox.policy import Closed, Network, Policy, Through, View
from harness_batch.sandbox.relay import PORT
from harness_batch.sandbox.secrets_at import homes
from harness_batch.sandbox.view import extended, host_view

PROPERTIES = (
    "write-confined",
    "net-none",
    "secrets-hidden",
    "no-survivors",
    "metadata-confined",
    "read-confined",
    "signal-confined",
    "unix-none",
    "loopback",
    "egress-allowlist",
    "git-file-protected",
)
REQUIRED = PROPERTIES[:4]
"""What `--sandbox required` asks for."""
UNCONFINED = "there is no kernel sandbox on this host"
SECONDS = 20.0
"""A canary that takes longer proves nothing."""


@frozen
class Property:
    """Whether commands are contained in this respect; `why` not, in words for the user."""

    holds: bool
    why: str = ""


async def prove(
    mechanism: Mechanism,
    environ: Mapping[str, str],
    folder: Path,
    *,
    network: Network | None = None,
    view: View = "host",
) -> dict[str, Property]:
    """What of `PROPERTIES` a mechanism gives in such a sandbox; two process starts and a bit."""
    with TemporaryDirectory(prefix="probe-", dir=folder) as name, ExitStack() as kept:
        place = Path(name).resolve()  # noqa: ASYNC240 - microseconds
        scene = kept.enter_context(_set_up(place))
        policy = _policy(place, environ, network or Closed(), view)
        target = {
            **scene.target,
            "hidden": "\0".join(str(p) for p, how in policy.paths.items() if how == "hidden"),
            "planted": "\0".join(map(str, scene.planted(environ))),
            "proxy": str(PORT) if isinstance(network, Through) else "",
        }
        if mechanism == "plain":  # the host itself is not attacked, only asked what outlives
            target["only"] = "no-survivors"
        argv = (sys.executable, "-I", "-S", "-B", canary.__file__, json.dumps(target))
        command = Command(argv=argv, cwd=Path(), timeout=SECONDS)
        output: list[bytes] = []
        complaint: list[bytes] = []
        try:
            async with open_launcher(policy, mechanism) as launcher:
                end = await launcher.run(command, output.append, complaint.append)
        except SandboxError as error:
            return _nothing(str(error))
        if end.exit_code != 0:
            said = b"".join(complaint).decode(errors="replace").strip().rpartition("\n")[2]
            return _nothing(f"the canary did not come to its end: {said[:200]}")
        found = _judged(dict(scene.seen(environ)), json.loads(b"".join(output)))
        return (
            {**_nothing(UNCONFINED), "no-survivors": found["no-survivors"]}
            if (mechanism == "plain")
            else found
        )


@frozen
class _Scene:
    """What there is to attack, and what is seen of it from outside."""

    place: Path
    target: dict[str, str]
    internet: tuple[socket.socket, ...]
    unix: tuple[socket.socket, ...]
    victim: "subprocess.Popen[bytes]"
    before: tuple[int, int]

    def planted(self, environ: Mapping[str, str]) -> Iterator[Path]:
        """Files that must not come to be."""
        for folder in homes(environ):
            yield folder / f".{self.target['token']}"

    def seen(self, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """(property, what happened)."""
        for planted in self.planted(environ):
            if planted.exists():
                planted.unlink()
                yield "write-confined", f"made a file in {planted.parent}"
        file = self.place / "outside" / "file"
        if not file.exists() or file.read_bytes() != b"untouched":
            yield "write-confined", "changed a file outside"
        elif _state(file) != self.before:
            yield "metadata-confined", "changed a file's mode or time outside"
        if any(map(_heard, self.internet)):
            yield "net-none", "reached a server outside"
        if any(map(_heard, self.unix)):
            yield "unix-none", "reached a unix socket outside"
        if self.victim.poll() is not None:
            yield "signal-confined", "killed a process outside"
        with (self.place / "work" / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield "no-survivors", "a daemon outlived its command"


@contextmanager
def _set_up(place: Path) -> Iterator[_Scene]:
    token = f"hb-canary-{secrets.token_hex(8)}"
    file = _furnish(place, token)
    env = {"PATH": os.defpath, "HB_CANARY": token}
    # It waits for input that never comes, and ends when we do, whatever ends us.
    victim = subprocess.Popen(("cat",), stdin=subprocess.PIPE, env=env, cwd="/")
    with ExitStack() as opened:
        if victim.stdin is not None:
            opened.enter_context(victim.stdin)
        opened.callback(victim.wait)
        opened.callback(victim.kill)
        tcp = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        by_path = _listen(unix[0], file.parent)
        unix[1].bind(f"\0{token}")
        for listener in unix:
            listener.listen()
        for one in (tcp, udp, *unix):
            one.setblocking(False)
        target = {
            "outside": str(file.parent),
            "token": token,
            "victim": str(victim.pid),
            "tcp": str(tcp.getsockname()[1]),
            "udp": str(udp.getsockname()[1]),
            "unix": by_path,
            "lock": str(place / "work" / "lock"),
            "only": "",
        }
        yield _Scene(place, target, (tcp, udp), tuple(unix), victim, _state(file))


def _furnish(place: Path, token: str) -> Path:
    """Folders to attack, and the one to work in; the file outside."""
    outside, work, secret = (place / name for name in ("outside", "work", "secret"))
    for folder in (outside, work, secret):
        folder.mkdir()
    (outside / "file").write_bytes(b"untouched")
    (outside / "doomed").touch()
    (secret / "key").write_text(token)
    (work / ".git").write_text("gitdir: nowhere\n")
    (work / "lock").touch()
    return outside / "file"


def _state(file: Path) -> tuple[int, int]:
    told = file.stat()
    return told.st_mode, told.st_mtime_ns


def _listen(listener: socket.socket, folder: Path) -> str:
    """Bind it to a path in there, by way of a descriptor: a socket's name is short."""
    handle = os.open(folder, os.O_PATH)
    try:
        listener.bind(f"/proc/self/fd/{handle}/s")
    finally:
        os.close(handle)
    return str(folder / "s")


def _heard(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(64)
    except OSError:
        return False
    return True


def _policy(place: Path, environ: Mapping[str, str], network: Network, view: View) -> Policy:
    outside, work = place / "outside", place / "work"
    paths = extended(
        host_view(environ),
        write=[work],
        read=[outside] if view == "host" else [],
        protected=[work / ".git"],
        hide=[place / "secret"],
    )
    env = {"PATH": environ.get("PATH", os.defpath), "HOME": str(work)}
    return Policy(env=env, cwd=work, network=network, view=view, paths=paths)


def _judged(seen: Mapping[str, str], said: Mapping[str, str]) -> dict[str, Property]:
    broken = {**said, **seen}
    if "writable" in broken:
        return _nothing(broken["writable"])
    return {
        name: Property(holds=False, why=f"a command {broken[name]}")
        if name in broken
        else Property(holds=True)
        for name in PROPERTIES
    }


def _nothing(why: str) -> dict[str, Property]:
    return {name: Property(holds=False, why=why) for name in PROPERTIES}
