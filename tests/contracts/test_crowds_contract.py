"""Too many processes end the command that has them, or cannot be had; every mechanism, root too.

The bombs are bounded: they start a fixed number of processes that end by themselves.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from harness_batch.processes import Command, CommandEnd, Launcher
from harness_batch.sandbox.cgroups import PREFIX, Ground, ground
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.mechanisms import MECHANISMS, Mechanism, lacking
from harness_batch.sandbox.policy import Closed, Limits, Policy
from harness_batch.sandbox.view import extended, host_view
from workspace_processes import commands_of, started_by

MOST = 60
BOMB = """
import os, sys, time
def second():
    try:
        return os.fork()
    except OSError:
        return 1
born = 0
for number in range(600):
    try:
        pid = os.fork()
    except OSError:
        break
    if not pid:
        os.setsid()
        if number % 2 and second():
            os._exit(0)
        time.sleep(8)
        os._exit(0)
    born += 1
    time.sleep(0.001)
print(born, flush=True)
time.sleep(int(sys.argv[1]))
"""


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    name: Mechanism = request.param
    if (why := lacking(name)) is not None:
        pytest.skip(f"{name}: {why}")
    return name


@pytest.fixture
def here() -> Ground:
    found = ground()
    if found is None:
        pytest.skip("no control group can be made here")
    return found


def nowhere() -> None:
    """A host without control groups."""


def groups_of(pid: int, here: Ground) -> list[str]:
    return [place.name for place in here.folder.glob(f"{PREFIX}*-{pid}-*-*")]


def policy(folder: Path, limits: Limits) -> Policy:
    paths = extended(host_view(os.environ), write=[folder])
    env = {"PATH": os.environ["PATH"]}
    return Policy(env=env, cwd=folder, network=Closed(), paths=paths, limits=limits)


async def run(launcher: Launcher, *argv: str) -> CommandEnd:
    return await launcher.run(Command(argv=argv, cwd=Path(), timeout=20), lambda _: None)


async def bomb(launcher: Launcher) -> CommandEnd:
    return await run(launcher, sys.executable, "-I", "-S", "-c", BOMB, "8")


async def test_a_bomb_is_ended_and_told_and_the_command_beside_it_goes_on(
    mechanism: Mechanism, tmp_path: Path
) -> None:
    peak, ends = 0, list[CommandEnd]()

    async def look() -> None:
        nonlocal peak
        while True:
            peak = max(peak, len(started_by(os.getpid())))
            await trio.sleep(0.02)  # a number that rises and falls: there is no event to wait for

    bounded = policy(tmp_path, Limits(processes=MOST))
    async with open_launcher(bounded, mechanism, nowhere) as launcher:

        async def bystander() -> None:
            ends.append(await run(launcher, "sh", "-c", "sleep 1; exit 3"))

        async with trio.open_nursery() as looking:
            looking.start_soon(look)
            async with trio.open_nursery() as beside:
                beside.start_soon(bystander)
                ended = await bomb(launcher)
            looking.cancel_scope.cancel()
        assert (await run(launcher, "sh", "-c", "exit 4")).exit_code == 4

    assert ended.limit == f"ended by the sandbox: more than {MOST} processes"
    assert ended.exit_code == -9
    assert not ended.timed_out
    assert peak < 500  # looked at now and then: the real peak may lie between two looks
    assert [(end.exit_code, end.limit) for end in ends] == [(3, "")]
    assert commands_of(os.getpid()) == set()


async def test_a_group_lets_no_more_start_and_the_session_goes_on(
    mechanism: Mechanism, here: Ground, tmp_path: Path
) -> None:
    output: list[bytes] = []
    bounded = policy(tmp_path, Limits(processes=0, tasks=MOST))
    argv = (sys.executable, "-I", "-S", "-c", BOMB, "0")
    async with open_launcher(bounded, mechanism) as launcher:
        ended = await launcher.run(Command(argv=argv, cwd=Path(), timeout=20), output.append)
        after = await run(launcher, "sh", "-c", "sleep 0 & wait; exit 4")
        assert len(groups_of(os.getpid(), here)) == 1

    assert 0 < int(b"".join(output)) < MOST
    assert ended.exit_code == 0
    assert ended.limit == f"the sandbox refused more than {MOST} processes and threads"
    assert (after.exit_code, after.limit) == (4, "")
    assert groups_of(os.getpid(), here) == []
    assert commands_of(os.getpid()) == set()


RUNNER = """
import sys, trio
from pathlib import Path
from harness_batch.processes import Command
from harness_batch.sandbox.launcher import open_launcher
from harness_batch.sandbox.policy import Policy

async def main():
    async with open_launcher(Policy(env={}, cwd=Path("/"))) as launcher:
        command = Command(argv=("sh", "-c", "echo here; sleep 60"), cwd=Path())
        await launcher.run(command, lambda chunk: print("up", flush=True))

trio.run(main)
"""


def test_the_group_of_a_killed_runner_is_swept_by_the_next_one(here: Ground) -> None:
    with subprocess.Popen((sys.executable, "-c", RUNNER), stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"up\n"
        left = groups_of(runner.pid, here)
        runner.send_signal(signal.SIGKILL)
    assert len(left) == 1

    sweep = "from harness_batch.sandbox.cgroups import ground; print(ground().folder)"
    told = subprocess.run((sys.executable, "-c", sweep), capture_output=True, check=True)

    assert told.stdout.decode().strip() == str(here.folder)
    assert groups_of(runner.pid, here) == []
