"""The bash tool with the real bash."""

import os
from pathlib import Path

import pytest
import trio

from fakes_tools import Desk, desk
from harness_batch.rules import Ask
from harness_batch.tools.bash import BashTool
from harness_batch.tools.protocol import ToolResult
from harness_batch.tools.truncation import MAX_BYTES, shorten

BASH = BashTool()


@pytest.fixture
def at(tmp_path: Path) -> Desk:
    return desk(tmp_path)


async def test_output_exit_code_and_duration_are_in_the_text(at: Desk) -> None:
    result = await at.call(BASH, command="echo out; echo err >&2; exit 3")

    assert result.status == "completed"
    assert result.exit_code == 3
    assert result.output.startswith("out\nerr\n[exit code 3 after ")
    assert result.metadata["output_bytes"] == 8


async def test_no_output_is_said(at: Desk) -> None:
    result = await at.call(BASH, command="true")

    assert result.output.startswith("(no output)\n[exit code 0 after ")


async def test_a_signal_is_told(at: Desk) -> None:
    result = await at.call(BASH, command="kill -TERM $$")

    assert result.exit_code == -15
    assert "killed by signal 15" in result.output


async def test_a_timeout_keeps_what_came_and_says_so(at: Desk) -> None:
    result = await at.call(BASH, command="echo began; sleep 60", timeout=0.3)

    assert result.status == "timeout"
    assert result.exit_code is None
    assert result.output.startswith("began\n[timed out after 0.3 s")
    assert "up to 600 s" in result.output


async def test_it_runs_in_the_workspace_or_in_workdir(at: Desk) -> None:
    (at.context.root / "sub").mkdir()

    assert (await at.call(BASH, command="pwd")).output.startswith(f"{at.context.root}\n")
    assert (await at.call(BASH, command="pwd", workdir="sub")).output.startswith(
        f"{at.context.root / 'sub'}\n"
    )


async def test_a_workdir_that_is_no_folder_is_refused(at: Desk) -> None:
    for workdir in ("missing", ".git", "~"):
        result = await at.call(BASH, command="pwd", workdir=workdir)
        assert result.status == "error"


def test_a_workdir_outside_needs_external_directory(at: Desk) -> None:
    outside = at.context.root.parent

    asks = at.asks(BASH, command="pwd", workdir="..")

    assert isinstance(asks, tuple)
    assert Ask("external_directory", str(outside)) in asks


def test_the_command_is_what_is_asked_for(at: Desk) -> None:
    assert at.asks(BASH, command="ls -l") == (Ask("bash", "ls -l"),)


@pytest.mark.parametrize("command", ["", "  \n", "a\0b", "\ud800", "x" * 200_000])
def test_a_command_that_cannot_be_run_is_refused(at: Desk, command: str) -> None:
    assert isinstance(at.asks(BASH, command=command), ToolResult)


@pytest.mark.parametrize("command", ["git push", "git remote add x y", "git config a b"])
def test_what_the_runner_does_itself_is_refused_whatever_the_rules_say(
    at: Desk, command: str
) -> None:
    refused = at.asks(BASH, command=command)

    assert isinstance(refused, ToolResult)
    assert "git" in refused.output


async def test_stdin_is_empty_and_no_startup_file_is_read(at: Desk) -> None:
    result = await at.call(BASH, command="cat; shopt login_shell; echo $-")

    assert "login_shell    \toff" in result.output
    assert "i" not in result.output.splitlines()[1]


async def test_a_child_in_the_background_does_not_hold_the_call(at: Desk) -> None:
    with trio.fail_after(5):
        result = await at.call(BASH, command="sleep 60 & echo started")

    assert result.output.startswith("started\n")


async def test_odd_bytes_are_escaped_and_colours_go(at: Desk) -> None:
    result = await at.call(BASH, command=r"printf '\377\033[31mred\033[0m\n 1%%\r99%%\n'")

    assert result.output.startswith("\\xffred\n99%\n[")


async def test_a_flood_is_bounded_and_its_end_is_kept(at: Desk) -> None:
    result = await at.call(BASH, command="yes | head -c 100000000; echo; echo the end")
    said = shorten(result, at.context.outputs, "call_1")

    assert len(said.encode()) <= MAX_BYTES
    assert "the end\n" in said
    assert "100000009 bytes in all" in said
    assert "holds only the first" in said
    assert result.whole == at.context.outputs / "call_1.txt"
    assert result.whole.stat().st_size == 64 << 20


async def test_a_flood_without_line_ends_ends_with_the_timeout(at: Desk) -> None:
    result = await at.call(BASH, command="tr '\\0' x < /dev/zero", timeout=0.5)
    said = shorten(result, at.context.outputs, "call_1")

    assert result.status == "timeout"
    assert len(said.encode()) <= MAX_BYTES
    assert said.splitlines()[-1].startswith("[timed out after 0.5 s")


async def test_cancelling_kills_the_command(at: Desk) -> None:
    file = at.context.root / "pid"
    async with trio.open_nursery() as nursery:
        command = "echo $$ > pid.new; mv pid.new pid; sleep 60"
        nursery.start_soon(lambda: at.call(BASH, command=command))
        while not file.exists():
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()

    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text()), 0)


async def test_a_launcher_that_cannot_start_is_an_error_result(at: Desk) -> None:
    (at.context.root / "gone").mkdir()
    asked = at.asks(BASH, command="pwd", workdir="gone")
    assert isinstance(asked, tuple)
    (at.context.root / "gone").rmdir()

    result = await BASH.run({"command": "pwd", "workdir": "gone"}, at.context, "c")

    assert result.status == "error"
