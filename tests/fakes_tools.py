"""What the tests of tools need: a launcher of real processes, and a session to work for."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import trio
from attrs import Factory, define, frozen

from harness_batch.errors import SandboxError
from harness_batch.messages import JsonObject
from harness_batch.processes import Command, CommandEnd
from harness_batch.rules import Ask
from harness_batch.tools.protocol import Tool, ToolContext, ToolResult


@frozen
class GroupLauncher:
    """Runs each command in a session of its own and kills the group when the command ends."""

    env: Mapping[str, str] = Factory(lambda: {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"})

    async def run(
        self,
        command: Command,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None] | None = None,
    ) -> CommandEnd:
        """Run to the end, to the timeout or to cancellation."""
        began = trio.current_time()
        try:
            process = await trio.lowlevel.open_process(
                list(command.argv),
                cwd=command.cwd,
                env={**self.env, **command.env},
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if stderr is None else subprocess.PIPE,
            )
        except OSError as error:
            raise SandboxError(str(error)) from error
        try:
            with trio.move_on_after(command.timeout or float("inf")) as clock:
                async with trio.open_nursery() as nursery:
                    assert process.stdout is not None
                    nursery.start_soon(_drain, process.stdout, stdout)
                    if stderr is not None:
                        assert process.stderr is not None
                        nursery.start_soon(_drain, process.stderr, stderr)
                    await process.wait()
                    _kill_group(process.pid)
        finally:
            _kill_group(process.pid)
            with trio.CancelScope(shield=True):
                await process.wait()
        return CommandEnd(
            exit_code=None if clock.cancelled_caught else process.returncode,
            timed_out=clock.cancelled_caught,
            duration_s=trio.current_time() - began,
        )


async def _drain(stream: trio.abc.ReceiveStream, take: Callable[[bytes], None]) -> None:
    async with stream:
        async for chunk in stream:
            take(bytes(chunk))


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


@define
class Desk:
    """One session: its context, and calls as the engine makes them."""

    context: ToolContext
    calls: int = 0

    def asks(self, tool: Tool, **arguments: object) -> object:
        """What the call would ask for."""
        return tool.asks(dict(arguments), self.context)

    async def call(self, tool: Tool, **arguments: object) -> ToolResult:
        """Ask, and run when nothing is refused at once."""
        asked = tool.asks(dict(arguments), self.context)
        if isinstance(asked, ToolResult):
            return asked
        self.calls += 1
        done: JsonObject = dict(arguments)
        return await tool.run(done, self.context, f"call_{self.calls}")


def desk(tmp_path: Path, may: Callable[[Ask], bool] = lambda _: True) -> Desk:
    """A session in an empty workspace `tmp_path/work`; all is allowed unless `may` says else."""
    root, outputs = tmp_path / "work", tmp_path / "outputs"
    root.mkdir()
    outputs.mkdir()
    root = root.resolve()
    return Desk(
        ToolContext(root=root, cwd=root, launcher=GroupLauncher(), outputs=outputs, may=may)
    )


def inside_only(ask: Ask) -> bool:
    """As the rules have it that allow everything but leaving the workspace."""
    return ask.permission != "external_directory"


def denying(permission: str, pattern: str) -> Callable[[Ask], bool]:
    """All but one thing."""
    return partial(_other, permission, pattern)


def _other(permission: str, pattern: str, ask: Ask) -> bool:
    return (ask.permission, ask.pattern) != (permission, pattern)
