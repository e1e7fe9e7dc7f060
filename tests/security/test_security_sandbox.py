"""The wall itself: commands that want through it, at each mechanism that this host has.

The whole program is driven twice: as the host is, and as in a container that refuses namespaces,
where Landlock is what remains.
"""

import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio

from functional_cli import Bench, Job, Outcome, Ran, carry_out
from harness_batch.errors import SandboxError
from harness_batch.processes import Command, own_program
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.mechanisms import MECHANISMS, Mechanism, lacking
from harness_batch.sandbox.policy import Closed, Policy, View
from harness_batch.sandbox.secrets_at import hidden
from harness_batch.sandbox.view import extended, host_view
from security_bench import bash, canary, hostile, told

WALLS = MECHANISMS[:2]
SECRET = canary()
VISIBLE = Path.home()
"""For what an attack is to find: /tmp is another one inside. Removed at the end."""


@pytest.fixture(params=WALLS)
def wall(request: pytest.FixtureRequest) -> Mechanism:
    name: Mechanism = request.param
    if (why := lacking(name)) is not None:
        pytest.skip(f"{name}: {why}")
    return name


def policy_of(
    folder: Path, environ: Mapping[str, str] = os.environ, *, view: View = "host"
) -> Policy:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    paths = extended(host_view(environ), write=[work])
    env = {"PATH": os.environ["PATH"], "HOME": str(work)}
    return Policy(env=env, cwd=work, network=Closed(), view=view, paths=paths)


async def said_by(policy: Policy, wall: Mechanism, *scripts: str) -> list[str]:
    """What each prints, one after the other in one sandbox; of one that fails the error's words."""
    found = []
    async with open_launcher(policy, wall) as launcher:
        for script in scripts:
            output: list[bytes] = []
            command = Command(argv=("bash", "-c", script), cwd=Path(), timeout=20)
            try:
                await launcher.run(command, output.append)
            except SandboxError as error:
                output.append(str(error).encode())
            found.append(b"".join(output).decode("utf-8", "replace"))
    return found


def python(code: str) -> str:
    return f"python3 - <<'END'\n{code}\nEND"


@pytest.mark.parametrize("signal", ["STOP", "KILL"])
async def test_what_watches_a_command_is_neither_stopped_nor_killed_for_gain(
    wall: Mechanism, signal: str, tmp_path: Path
) -> None:
    mark = f"{600 + os.getpid() / 1e7:.7f}"
    attack = f"setsid sleep {mark} & kill -{signal} $PPID; sleep 5"

    first, after = await said_by(policy_of(tmp_path), wall, attack, f"pgrep -f 'sleep {mark}$'")

    assert "was killed or stopped" in first
    assert after == ""


async def test_no_pair_of_sockets_sends_to_a_socket_of_the_host(
    wall: Mechanism, tmp_path: Path
) -> None:
    with (
        TemporaryDirectory(prefix="hbs", dir=VISIBLE) as place,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        here = os.open(place, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/s")
        os.close(here)
        listener.setblocking(False)
        attack = python(f"""
import os, socket
here = os.open({place!r}, os.O_PATH)
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b'x', f'/proc/self/fd/{{here}}/s')
        print('sent')
    except OSError as error:
        print(error)
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    socket.socketpair(socket.AF_UNIX, kind | socket.SOCK_CLOEXEC)
print('pairs')
""")
        (said,) = await said_by(policy_of(tmp_path), wall, attack)

        assert said.splitlines()[-1] == "pairs"
        assert "sent" not in said
        with pytest.raises(BlockingIOError):
            listener.recv(1)


async def test_devices_and_shared_memory_of_the_host_are_out_of_reach(
    wall: Mechanism, tmp_path: Path
) -> None:
    with TemporaryDirectory(prefix="hbs", dir="/dev/shm") as place:
        await trio.Path(place, "key").write_text(SECRET)
        attack = python("""
import os, stat
allowed = {'null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'console'}
for name in sorted(os.listdir('/dev')):
    path = f'/dev/{name}'
    kind = stat.S_IFMT(os.lstat(path).st_mode)
    if kind in (stat.S_IFCHR, stat.S_IFBLK) and name not in allowed:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            print('opened', path)
        except OSError:
            pass
open('/dev/urandom', 'rb').read(1), open('/dev/null', 'w').write('x')
print('done')
""")
        said, key = await said_by(policy_of(tmp_path), wall, attack, f"cat {place}/key")

    assert said == "done\n"
    assert SECRET not in key


async def test_nothing_is_left_in_the_hosts_shared_memory(wall: Mechanism, tmp_path: Path) -> None:
    key = 0x68620000 | os.getpid() & 0xFFFF
    attack = python(f"""
import ctypes
libc = ctypes.CDLL(None)
libc.shmget({key}, 4096, 0o1600); libc.msgget({key}, 0o1600); libc.semget({key}, 1, 0o1600)
""")
    await said_by(policy_of(tmp_path), wall, attack)

    for kind in ("shm", "msg", "sem"):
        listed = await trio.Path(f"/proc/sysvipc/{kind}").read_text()
        assert str(key) not in {line.split()[0] for line in listed.splitlines()}


async def test_a_narrow_view_shows_no_secret_of_a_system_folder(
    wall: Mechanism, tmp_path: Path
) -> None:
    names = ("/etc/shadow", "/etc/gshadow")
    policy = policy_of(tmp_path, view="narrow")
    (said,) = await said_by(policy, wall, f"cat {' '.join(names)} 2>/dev/null; cat /etc/passwd")

    assert said == await trio.Path("/etc/passwd").read_text()


async def test_a_secret_is_hidden_where_links_of_its_home_and_variables_lead(
    wall: Mechanism, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for name in ("home/.ssh", "home/dotfiles", "etc"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("home/dotfiles/id", "etc/password", "etc/runtime"):
        (tmp_path / name).write_text(SECRET)
    (home / ".ssh" / "id").symlink_to(home / "dotfiles" / "id")
    environ = {
        **os.environ,
        "HOME": str(home),
        "SHOP_PASSWORD_FILE": str(tmp_path / "etc" / "password"),
        "PGPASSFILE": str(tmp_path / "etc" / "runtime"),
    }
    found = hidden(environ)
    assert {home / "dotfiles" / "id", tmp_path / "etc" / "password"} <= found.keys()
    shown = policy_of(tmp_path, environ)
    paths = {**shown.paths, home: "read", tmp_path / "etc": "read"}
    policy = Policy(env=shown.env, cwd=shown.cwd, network=Closed(), paths=paths)

    (said,) = await said_by(policy, wall, f"cat {home}/dotfiles/* {tmp_path}/etc/*; echo end")

    assert said.endswith("end\n")
    assert SECRET not in said


async def test_landlock_says_what_it_cannot_hide(tmp_path: Path) -> None:
    if (why := lacking("landlock")) is not None:
        pytest.skip(why)
    base = policy_of(tmp_path)
    (tmp_path / "work" / "key").write_text(SECRET)
    paths = {**base.paths, tmp_path / "work" / "key": "hidden"}
    policy = Policy(env=base.env, cwd=base.cwd, paths=paths)
    with pytest.raises(SandboxError, match=r"cannot hide .*work/key"):
        await said_by(policy, "landlock", "cat key")


def test_programs_of_the_runner_are_not_taken_from_the_folder_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bin/git", "git", "real/git"):
        planted = tmp_path / name
        planted.parent.mkdir(exist_ok=True)
        planted.write_text("#!/bin/sh\n")
        planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f":.:bin:{tmp_path}/real")

    assert own_program("git") == f"{tmp_path}/real/git"
    assert own_program("no-such-program") is None


REFUSING = """
import os, sys
from harness_batch.sandbox import syscall_filter
from harness_batch.sandbox.giving_up import filter_calls
filter_calls(syscall_filter.program((1, *syscall_filter.INTERNET), own_ipc=True))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""As a container's own filter does: no namespaces, no mounts."""
TOKEN = "[http]\n\textraheader = AUTHORIZATION: basic {}\n"
NEIGHBOUR = (
    "cd ../../..; for n in $(seq 20); do cat */*/home/diary */*/tree/diary 2>/dev/null "
    "&& break; sleep 0.1; done; ls; echo looked"
)
DIARY = f"echo {SECRET[:-2]}'{SECRET[-2:]}' | tee diary > ~/diary; sleep 2"
WRITER = "setsid bash -c 'while sleep 0.05; do date >> late; done'"
KEEPER = f"({WRITER} &); sleep 0.3; kill -STOP $PPID; sleep 1"
COUNT = "a=$(cat late | wc -l); sleep 0.3; b=$(cat late | wc -l); echo grew $((b - a))"


def config_of(project: Path) -> Path:
    return project / ".git" / "modules" / "vendor" / "thing" / "config"


def hostile_run(folder: Path, wrapper: tuple[str, ...]) -> Ran:
    bench = Bench(folder)
    config = config_of(bench.project)
    config.parent.mkdir(parents=True)
    config.write_text(TOKEN.format(SECRET))
    (config.parent / "objects").mkdir()
    git = bench.project / ".git"
    attack = f"cat {config} {git}/config; find {git} -name config | xargs cat; echo end"
    confined = {"need": ["secrets-hidden"]}
    jobs: list[Job] = [
        hostile("config", bash(attack)),
        hostile("writes", bash(DIARY)),
        hostile("neighbour", bash(NEIGHBOUR)),
        hostile("stops", bash(KEEPER), bash(COUNT)),
        hostile("in-place", bash("cat .git/config"), workspace={"mode": "in-place"}),
        hostile("needs", bash("cat .git/config"), workspace={"mode": "in-place"}, sandbox=confined),
    ]
    return carry_out(folder, jobs, "-j", "4", wrapper=wrapper)


@pytest.fixture(scope="module", params=WALLS)
def ran(request: pytest.FixtureRequest) -> Iterator[Ran]:
    if (why := lacking(request.param)) is not None:
        pytest.skip(f"{request.param}: {why}")
    wrapper = (sys.executable, "-c", REFUSING) if request.param == "landlock" else ()
    with TemporaryDirectory(prefix="hbs", dir=VISIBLE) as place:
        done = hostile_run(Path(place), wrapper)
        found = json.loads((done.folder / "result.json").read_text())["sandbox"]
        assert found["mechanism"] == request.param, found
        yield done


def contained(ran: Ran, name: str) -> Outcome:
    session = ran.session(name)
    if (session.status, session.reason) == ("errored", "sandbox"):
        pytest.skip(f"this host: {session.detail}")
    return session


def test_configurations_of_git_with_tokens_are_hidden(ran: Ran) -> None:
    said = told(contained(ran, "config"), 1)

    assert "end" in said
    assert "extraheader" not in said
    assert "repositoryformatversion" not in said


def test_a_session_sees_nothing_of_its_neighbours(ran: Ran) -> None:
    said = told(contained(ran, "neighbour"), 1)

    assert "looked" in said
    assert SECRET not in said


def test_a_daemon_behind_a_stopped_keeper_writes_no_more(ran: Ran) -> None:
    session = contained(ran, "stops")

    assert "grew 0" in told(session, 2)


def test_in_place_a_need_for_hidden_secrets_is_met_or_refused(ran: Ran) -> None:
    session = ran.session("needs")

    if session.status == "errored":
        assert "Landlock cannot hide .git/config" in session.detail
        assert session.requests == []
    else:
        assert "repositoryformatversion" not in told(session, 1)
