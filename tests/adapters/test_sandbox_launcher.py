"""Commands run, are heard, and leave nothing alive: the plain launcher with real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from harness_batch.errors import SandboxError
from harness_batch.processes import Command, CommandEnd, Launcher
from harness_batch.sandbox.plain import open_launcher
from harness_batch.sandbox.probe import PROPERTIES, host_properties
from workspace_processes import commands_of, gone, is_alive, started_by

PYTHON = (sys.executable, "-I", "-S", "-c")
ENV = {"PATH": os.environ["PATH"], "MARK": "ours"}


@asynccontextmanager
async def launching(folder: Path) -> AsyncIterator[Launcher]:
    async with open_launcher(env=ENV, cwd=folder) as launcher:
        yield launcher


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


async def test_output_folder_environment_and_exit_code_are_the_commands(tmp_path: Path) -> None:
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    tmp_path: Path, argv: tuple[str, ...], folder: str, said: str
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
async def test_what_a_command_leaves_behind_dies_with_it(tmp_path: Path, script: str) -> None:
    async with launching(tmp_path) as launcher:
        end, output = await sh(launcher, script)
        pid = int(next(word for word in output.split() if word.isdigit()))
        assert end.exit_code == 0
        assert not end.timed_out
        assert not is_alive(pid)


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
async def test_daemons_and_fork_chases_are_caught(tmp_path: Path, script: str) -> None:
    async with launching(tmp_path) as launcher:
        end, _ = await python(launcher, script)
        assert end.exit_code == 0
        assert commands_of(os.getpid()) == set()


async def test_a_timeout_kills_the_tree_and_keeps_the_output(tmp_path: Path) -> None:
    async with launching(tmp_path) as launcher:
        end, output = await sh(
            launcher, "trap '' TERM; setsid sleep 600 & echo $!; kill -STOP $$", seconds=0.3
        )
        assert end.timed_out
        assert end.exit_code is None
        assert end.duration_s < 5
        assert not is_alive(int(output))


async def test_cancelling_kills_the_tree_before_it_goes_on(tmp_path: Path) -> None:
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
    assert not is_alive(int(output[0]))


async def test_closing_the_launcher_leaves_no_process_and_no_zombie(tmp_path: Path) -> None:
    async with launching(tmp_path) as launcher:
        await sh(launcher, "true")
        assert started_by(os.getpid())
    assert started_by(os.getpid()) == {}


async def test_a_flood_of_output_passes_through_in_chunks(tmp_path: Path) -> None:
    sizes: list[int] = []
    async with launching(tmp_path) as launcher:
        command = Command(argv=("head", "-c", "50000000", "/dev/zero"), cwd=Path())
        await launcher.run(command, lambda chunk: sizes.append(len(chunk)))
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= 65_536


async def test_commands_that_overlap_end_apart(tmp_path: Path) -> None:
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
        assert not is_alive(int(short))
        assert is_alive(int(output[0]))
        nursery.cancel_scope.cancel()
    assert not is_alive(int(output[0]))


async def test_a_command_that_kills_its_keeper_leaves_nothing_and_the_next_one_runs(
    tmp_path: Path,
) -> None:
    async with launching(tmp_path) as launcher:
        output: list[bytes] = []
        script = "setsid sleep 600 & echo $!; sleep 0.1; kill -9 $PPID; sleep 600"
        with pytest.raises(SandboxError, match="supervisor died"):
            await launcher.run(Command(argv=("sh", "-c", script), cwd=Path()), output.append)
        await gone(int(output[0]))
        assert (await sh(launcher, "exit 3"))[0].exit_code == 3


async def test_a_command_that_kills_the_supervisor_too_is_an_error_not_a_hang(
    tmp_path: Path,
) -> None:
    async with launching(tmp_path) as launcher:
        await sh(launcher, "true")
        (supervisor,) = (
            p for p, name in started_by(os.getpid()).items() if name == "hb-supervisor"
        )
        end, _ = await sh(launcher, f"kill -9 {supervisor}; setsid sleep 600 & exit 4")
        assert end.exit_code == 4  # the keeper lives by itself
        with pytest.raises(SandboxError):
            await sh(launcher, "true")


async def test_a_stopped_supervisor_still_lets_the_launcher_close(tmp_path: Path) -> None:
    with trio.fail_after(5):
        async with launching(tmp_path) as launcher:
            await sh(launcher, "true")
            for pid in started_by(os.getpid()):
                os.kill(pid, signal.SIGSTOP)
    assert started_by(os.getpid()) == {}


RUNNER = """
import os, sys, trio
from pathlib import Path
from harness_batch.processes import Command
from harness_batch.sandbox.plain import open_launcher
async def main():
    async with open_launcher(env={"PATH": os.environ["PATH"]}, cwd=Path("/")) as launcher:
        script = "(trap '' TERM; setsid sleep 600 & echo $!; sleep 600) & echo $!; echo $$; wait"
        command = Command(argv=("sh", "-c", script), cwd=Path("/"))
        await launcher.run(command, lambda chunk: os.write(1, chunk))
trio.run(main)
"""


def start_runner() -> "subprocess.Popen[bytes]":
    root = Path(__file__).parents[2] / "runner"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root)}
    return subprocess.Popen([sys.executable, "-c", RUNNER], stdout=subprocess.PIPE, env=env)


async def test_killing_the_runner_with_signal_9_leaves_nothing_alive() -> None:
    with start_runner() as runner:
        assert runner.stdout is not None
        pids = [int(runner.stdout.readline()) for _ in range(3)]
        pids += started_by(runner.pid)
        assert len(pids) >= 7  # the supervisor, the keeper, two shells, two sleeps
        assert all(map(is_alive, pids))
        runner.kill()
    for pid in pids:
        await gone(pid)


async def test_hundreds_of_short_commands_in_eight_sessions_all_end(tmp_path: Path) -> None:
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


async def test_the_probe_proves_what_the_plain_launcher_gives() -> None:
    found = await host_properties()
    assert set(found) == set(PROPERTIES)
    assert found.pop("no-survivors").holds
    assert not any(one.holds for one in found.values())
    assert all("kernel sandbox" in one.why for one in found.values())
