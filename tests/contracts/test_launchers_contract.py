"""Commands run, are heard, and leave nothing alive: every mechanism, with real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest
import trio

from harness_batch.errors import SandboxError
from harness_batch.processes import Command, CommandEnd, Launcher
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.mechanisms import MECHANISMS, Mechanism, lacking
from harness_batch.sandbox.policy import Closed, Policy
from harness_batch.sandbox.view import extended, host_view
from workspace_processes import commands_of, gone, is_alive, seen_from_here, started_by

PYTHON = (sys.executable, "-I", "-S", "-c")
ENV = {"PATH": os.environ["PATH"], "MARK": "ours"}


def running(inside: int) -> bool:
    """Whether a command of this process has that number where it runs."""
    return seen_from_here(inside, os.getpid()) is not None


Launching = Callable[[Path], AbstractAsyncContextManager[Launcher]]


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    name: Mechanism = request.param
    if (why := lacking(name)) is not None:
        pytest.skip(f"{name}: {why}")
    return name


@pytest.fixture
def launching(mechanism: Mechanism) -> Launching:
    """Opens a launcher that works in a folder."""
    base = host_view(os.environ)

    def launch(folder: Path) -> AbstractAsyncContextManager[Launcher]:
        paths = extended(base, write=[folder])
        policy = Policy(env=ENV, cwd=folder, network=Closed(), paths=paths)
        return open_launcher(policy, mechanism)

    return launch


async def sh(
    launcher: Launcher, script: str, *, seconds: float | None = 20
) -> tuple[CommandEnd, str]:
    output: list[bytes] = []
    command = Command(argv=("sh", "-c", script), cwd=Path(), timeout=seconds)
    end = await launcher.run(command, output.append)
    return end, b"".join(output).decode()


async def python(launcher: Launcher, script: str, *, seconds: float = 20) -> tuple[CommandEnd, str]:
    output: list[bytes] = []
    command = Command(argv=(*PYTHON, script), cwd=Path(), timeout=seconds)
    end = await launcher.run(command, output.append)
    return end, b"".join(output).decode()


async def test_output_folder_environment_and_exit_code_are_the_commands(
    launching: Launching, tmp_path: Path
) -> None:
    (tmp_path / "sub dir").mkdir()
    out: list[bytes] = []
    err: list[bytes] = []
    command = Command(
        argv=("sh", "-c", 'pwd; echo "$MARK $MORE" "$(cat)"; echo oops >&2; exit 7'),
        cwd=Path("sub dir"),
        env={"MORE": "\udcff ü", "MARK": "theirs"},
    )
    async with launching(tmp_path) as launcher:
        end = await launcher.run(command, out.append, err.append)
        _, together = await sh(launcher, "echo one; echo two >&2; echo three")
        killed, _ = await sh(launcher, "kill -SEGV $$")
    assert end.exit_code == 7
    assert not end.timed_out
    assert os.fsdecode(b"".join(out)) == f"{tmp_path}/sub dir\ntheirs \udcff ü \n"
    assert b"".join(err) == b"oops\n"
    assert together == "one\ntwo\nthree\n"
    assert killed.exit_code == -signal.SIGSEGV


async def test_a_command_gets_the_allow_listed_environment_and_nothing_else(
    launching: Launching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNNER_SECRET", "s3cret")
    async with launching(tmp_path) as launcher:
        seen: list[bytes] = []
        await launcher.run(Command(argv=("env",), cwd=Path()), seen.append)
        _, above = await sh(launcher, "cat /proc/$PPID/environ; echo; ls /proc/self/fd")
        _, state = await python(
            launcher,
            "import os, resource, signal as s; print(resource.getrlimit(resource.RLIMIT_CORE),"
            "os.getsid(0) == os.getpid(), s.getsignal(s.SIGTERM) == s.SIG_DFL,"
            "s.pthread_sigmask(0, []), 'NoNewPrivs:\\t1' in open('/proc/self/status').read())",
        )
    assert sorted(os.fsdecode(b"".join(seen)).splitlines()) == sorted(
        f"{k}={v}" for k, v in ENV.items()
    )
    assert "s3cret" not in above
    assert above.split()[-4:] == ["0", "1", "2", "3"]  # the last one is the listing's own
    assert state == "(0, 0) True True set() True\n"


@pytest.mark.parametrize(
    ("argv", "folder", "said"),
    [
        (("no-such-program",), ".", r"no such program on PATH \("),
        (("./no-such-program",), ".", "No such file"),
        (("/etc/passwd",), ".", "Permission denied"),
        (("true",), "no-such-folder", "in 'no-such-folder': No such file"),
        (("echo", "a\0b"), ".", "NUL"),
        ((), ".", "empty"),
    ],
)
async def test_what_cannot_be_started_is_said_clearly(
    launching: Launching, tmp_path: Path, argv: tuple[str, ...], folder: str, said: str
) -> None:
    async with launching(tmp_path) as launcher:
        with pytest.raises(SandboxError, match=said):
            await launcher.run(Command(argv=argv, cwd=Path(folder)), print)
        assert (await sh(launcher, "exit 3"))[0].exit_code == 3


LEFTOVERS = {
    "background child that holds the output": "sleep 600 & echo $!",
    "nohup": "nohup sleep 600 >/dev/null 2>&1 & echo $!",
    "ignores SIGTERM": "(trap '' TERM HUP INT; sleep 600) & echo $!",
    "stopped": "sleep 600 & kill -STOP $!; echo $!",
    "keeps printing": "(while :; do echo noise; done) & echo $!",
}


@pytest.mark.parametrize("script", LEFTOVERS.values(), ids=LEFTOVERS.keys())
async def test_what_a_command_leaves_behind_dies_with_it(
    launching: Launching, tmp_path: Path, script: str
) -> None:
    async with launching(tmp_path) as launcher:
        end, output = await sh(launcher, script)
        pid = int(next(word for word in output.split() if word.isdigit()))
        assert end.exit_code == 0
        assert not end.timed_out
        assert not running(pid)


DAEMON = """
import os, time
for n in range({count}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print(os.getpid(), flush=True)
            time.sleep(600)
        os._exit(0)
for n in range({count}):
    os.wait()
"""
CHASE = """
import os
def chase():
    while True:
        if os.fork(): os._exit(0)
        {each}
for n in range({count}):
    if os.fork() == 0: chase()
"""
TREE = """
import os, time
me = os.getpid()
for n in range(5):
    os.fork()
    if os.getpid() != me: os.setpgid(0, 0)
if os.getpid() != me: time.sleep(600)
"""


@pytest.mark.parametrize(
    "script",
    [
        DAEMON.format(count=40),
        CHASE.format(count=1, each="pass"),
        CHASE.format(count=4, each="pass"),
        CHASE.format(count=3, each="os.setsid()"),
        TREE,
    ],
    ids=["daemons", "chase", "four chases", "chases in new sessions", "tree of groups"],
)
async def test_daemons_and_fork_chases_are_caught(
    launching: Launching, tmp_path: Path, script: str
) -> None:
    async with launching(tmp_path) as launcher:
        end, _ = await python(launcher, script)
        assert end.exit_code == 0
        assert commands_of(os.getpid()) == set()


async def test_a_timeout_kills_the_tree_and_keeps_the_output(
    launching: Launching, tmp_path: Path
) -> None:
    async with launching(tmp_path) as launcher:
        end, output = await sh(
            launcher, "trap '' TERM; setsid sleep 600 & echo $!; kill -STOP $$", seconds=0.3
        )
        assert end.timed_out
        assert end.exit_code is None
        assert end.duration_s < 5
        assert not running(int(output))


async def test_cancelling_kills_the_tree_before_it_goes_on(
    launching: Launching, tmp_path: Path
) -> None:
    heard = trio.Event()
    output: list[bytes] = []

    def hear(chunk: bytes) -> None:
        output.append(chunk)
        heard.set()

    async with launching(tmp_path) as launcher, trio.open_nursery() as nursery:
        command = Command(argv=("sh", "-c", "setsid sleep 600 & echo $!; wait"), cwd=Path())
        nursery.start_soon(launcher.run, command, hear)
        await heard.wait()
        nursery.cancel_scope.cancel()
    assert not running(int(output[0]))


async def test_closing_the_launcher_leaves_no_process_and_no_zombie(
    launching: Launching, tmp_path: Path
) -> None:
    async with launching(tmp_path) as launcher:
        await sh(launcher, "true")
        assert started_by(os.getpid())
    assert started_by(os.getpid()) == {}


async def test_a_flood_of_output_passes_through_in_chunks(
    launching: Launching, tmp_path: Path
) -> None:
    sizes: list[int] = []
    async with launching(tmp_path) as launcher:
        command = Command(argv=("head", "-c", "50000000", "/dev/zero"), cwd=Path())
        await launcher.run(command, lambda chunk: sizes.append(len(chunk)))
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= 65_536


async def test_commands_that_overlap_end_apart(launching: Launching, tmp_path: Path) -> None:
    async with launching(tmp_path) as launcher, trio.open_nursery() as nursery:
        output: list[bytes] = []
        heard = trio.Event()

        def hear(chunk: bytes) -> None:
            output.append(chunk)
            heard.set()

        long = Command(argv=("sh", "-c", "setsid sleep 600 & echo $!; wait"), cwd=Path())
        nursery.start_soon(launcher.run, long, hear)
        await heard.wait()
        _, short = await sh(launcher, "sleep 600 & echo $!")
        assert not running(int(short))
        assert running(int(output[0]))
        nursery.cancel_scope.cancel()
    assert not running(int(output[0]))


def part(name: str) -> int:
    """The one process of the launcher with that name."""
    (pid,) = (pid for pid, found in started_by(os.getpid()).items() if found == name)
    return pid


async def test_a_keeper_that_is_killed_leaves_nothing_and_the_next_command_runs(
    launching: Launching, tmp_path: Path
) -> None:
    output: list[bytes] = []

    def hear(chunk: bytes) -> None:
        output.append(chunk)
        os.kill(part("hb-keeper"), signal.SIGKILL)

    async with launching(tmp_path) as launcher:
        command = Command(argv=("sh", "-c", "setsid sleep 600 & echo $!; sleep 600"), cwd=Path())
        with pytest.raises(SandboxError, match="killed or stopped"):
            await launcher.run(command, hear)
        assert (await sh(launcher, "exit 3"))[0].exit_code == 3
        assert not running(int(output[0]))


async def test_a_supervisor_that_is_killed_is_an_error_not_a_hang(
    launching: Launching, tmp_path: Path
) -> None:
    async with launching(tmp_path) as launcher:
        await sh(launcher, "true")
        os.kill(part("hb-supervisor"), signal.SIGKILL)
        with pytest.raises(SandboxError):
            await sh(launcher, "true")


async def test_no_command_gets_at_the_supervisor_of_a_sandbox(
    launching: Launching, mechanism: Mechanism, tmp_path: Path
) -> None:
    if mechanism == "plain":
        pytest.skip("plain contains nothing")
    async with launching(tmp_path) as launcher:
        await sh(launcher, "true")
        _, said = await sh(
            launcher,
            "above=$(awk '/^PPid/ {print $2}' /proc/$PPID/status); kill -9 $above; "
            "kill -STOP $above; cat /proc/$above/environ /proc/$above/mem; echo done",
        )
        assert said.count("enied") + said.count("not permitted") >= 2, said
        assert (await sh(launcher, "exit 3"))[0].exit_code == 3


async def test_a_stopped_supervisor_still_lets_the_launcher_close(
    launching: Launching, tmp_path: Path
) -> None:
    with trio.fail_after(5):
        async with launching(tmp_path) as launcher:
            await sh(launcher, "true")
            for pid in started_by(os.getpid()):
                with suppress(ProcessLookupError):  # a keeper that is done may be reaped any moment
                    os.kill(pid, signal.SIGSTOP)
    assert started_by(os.getpid()) == {}


RUNNER = """
import os, sys, trio
from pathlib import Path
from harness_batch.processes import Command
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.policy import Policy
from harness_batch.sandbox.view import host_view
async def main():
    env = {"PATH": os.environ["PATH"]}
    policy = Policy(env=env, cwd=Path("/"), paths=host_view(env))
    async with open_launcher(policy, sys.argv[1]) as launcher:
        script = "(trap '' TERM; setsid sleep 600 & sleep 600) & sleep 0.1; echo ready; wait"
        command = Command(argv=("sh", "-c", script), cwd=Path("/"))
        await launcher.run(command, lambda chunk: os.write(1, chunk))
trio.run(main)
"""


def start_runner(mechanism: Mechanism) -> "subprocess.Popen[bytes]":
    root = Path(__file__).parents[2] / "runner"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root)}
    argv = [sys.executable, "-c", RUNNER, mechanism]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, env=env)


async def test_killing_the_runner_with_signal_9_leaves_nothing_alive(mechanism: Mechanism) -> None:
    with start_runner(mechanism) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        started = started_by(runner.pid)
        assert len(started) >= 5  # the supervisor, the keeper, a shell, two sleeps
        assert all(map(is_alive, started))
        runner.kill()
    for pid in started:
        await gone(pid)


async def test_hundreds_of_short_commands_in_eight_sessions_all_end(
    launching: Launching, tmp_path: Path
) -> None:
    codes: list[int | None] = []

    async def session(number: int) -> None:
        async with launching(tmp_path) as launcher:
            for n in range(60):
                command = Command(argv=("/bin/sh", "-c", f"exit {(number + n) % 7}"), cwd=Path())
                codes.append((await launcher.run(command, print)).exit_code)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(session, number)
    assert len(codes) == 480
    assert sum(code or 0 for code in codes) == sum(
        (number + n) % 7 for number in range(8) for n in range(60)
    )
    assert started_by(os.getpid()) == {}
