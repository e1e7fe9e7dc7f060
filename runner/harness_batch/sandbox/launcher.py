"""A session's launcher: commands run in the sandbox, and nothing survives a command or the runner.

One supervisor process a session (supervisor.py) starts the commands, under what a mechanism
(mechanisms.py) makes of the policy; here is the runner's side: requests, output, timeouts,
cancellation. Commands may overlap, each one's processes are tracked apart. Output is handed on as
it is read and never kept, so a flood costs time, not memory.
"""

import marshal
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import trio
from attrs import Factory, define, frozen

from harness_batch.errors import SandboxError
from harness_batch.processes import Command, CommandEnd, Launcher
from harness_batch.sandbox.bounds import Bounds, Finding, open_bounds
from harness_batch.sandbox.cgroups import ground
from harness_batch.sandbox.mechanisms import Beginning, Mechanism, beginning
from harness_batch.sandbox.policy import Policy
from harness_batch.sandbox.reaping import children_of

Sink = Callable[[bytes], None]

CHUNK = 65_536
LEFT_OVER = 4_194_304
"""Bytes read from a pipe after the end; more can only come from a stranger who holds the pipe."""
KILL_SECONDS = 8.0
"""Longer than the supervisor takes to kill or to give up."""


@asynccontextmanager
async def open_launcher(
    policy: Policy, mechanism: Mechanism = "plain", find: Finding = ground
) -> AsyncIterator[Launcher]:
    """A launcher for one session; at the end all it started is dead, cancelled or not.

    What the host refuses of the policy the first command is told. Raises: SandboxError when the
    supervisor cannot be started.
    """
    start = beginning(policy, mechanism)
    ours, theirs = socket.socketpair()
    with ours, theirs, os.fdopen(os.memfd_create("hb-said"), "rb") as said:
        async with open_bounds(policy.limits, find) as bounds:
            try:
                process = await trio.lowlevel.open_process(
                    (*start.argv, str(theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said.fileno(),
                    env=start.env,
                    cwd="/",
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # Ctrl-C is the runner's to handle
                )
            except OSError as error:
                raise SandboxError(f"cannot start the process supervisor: {error}") from error
            theirs.close()
            control = trio.socket.from_stdlib_socket(ours)
            try:
                held = partial(bounds.hold, process.pid, bounds.begin(process.pid))
                yield _Supervised(control, policy, start, said, bounds, held)
            finally:
                ours.close()
                with trio.CancelScope(shield=True):
                    await _ended(process)


async def _ended(process: trio.Process) -> None:
    """Wait until all of it is gone; what a command stopped goes on for that."""
    _signal(process, signal.SIGCONT)
    with trio.move_on_after(KILL_SECONDS):
        await process.wait()
    if process.returncode is None:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: trio.Process, number: signal.Signals) -> None:
    """To the supervisor, and to what it may be wrapped in."""
    for pid in (*children_of(process.pid), process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@frozen
class ForEach:
    """`Launcher` that opens a sandbox for every command: for few of them, far between."""

    policy: Policy
    mechanism: Mechanism

    async def run(self, command: Command, stdout: Sink, stderr: Sink | None = None) -> CommandEnd:
        """See `Launcher`."""
        async with open_launcher(self.policy, self.mechanism) as launcher:
            return await launcher.run(command, stdout, stderr)


@frozen
class _Output:
    """The reading end of a command's pipe and who gets what comes."""

    descriptor: int
    sink: Sink

    async def pump(self) -> None:
        """Hand on until the pipe ends. One chunk at a time: the pipe is the only buffer."""
        while True:
            await trio.lowlevel.wait_readable(self.descriptor)
            chunk = os.read(self.descriptor, CHUNK)
            if not chunk:
                return
            self.sink(chunk)

    def drain(self) -> None:
        """Hand on what lies in the pipe without waiting for who may still hold it."""
        read = 0
        try:
            while read < LEFT_OVER and (chunk := os.read(self.descriptor, CHUNK)):
                read += len(chunk)
                self.sink(chunk)
        except BlockingIOError:
            pass


@define
class _Supervised:
    """`Launcher` by way of the supervisor."""

    control: trio.socket.SocketType
    policy: Policy
    start: Beginning
    said: BinaryIO
    """What the supervisor and what it is wrapped in print."""
    bounds: Bounds
    held: Callable[[], Awaitable[None]]
    """Returns when the bounds hold for the supervisor."""
    ready: bool = False
    turn: trio.Lock = Factory(trio.Lock)
    """Requests go out whole, one after the other."""

    async def run(self, command: Command, stdout: Sink, stderr: Sink | None = None) -> CommandEnd:
        """See `Launcher`."""
        started, before = time.monotonic(), self.bounds.met()
        sinks = (stdout,) if stderr is None else (stdout, stderr)
        with ExitStack() as open_files:
            channel = await self._start(command, sinks, open_files)
            outputs = channel.outputs
            async with trio.open_nursery() as nursery:
                for output in outputs:
                    nursery.start_soon(output.pump)
                answer, timed_out = await channel.end(command.timeout)
                nursery.cancel_scope.cancel()
            for output in outputs:
                output.drain()
        exit_code = _exit_code(answer, command, {**self.policy.env, **command.env})
        return CommandEnd(
            exit_code=None if timed_out else exit_code,
            timed_out=timed_out,
            duration_s=time.monotonic() - started,
            limit=self.bounds.told(answer, before),
        )

    async def _start(
        self, command: Command, sinks: tuple[Sink, ...], open_files: ExitStack
    ) -> "_Channel":
        body = _encode(
            command, self.policy.cwd, {**self.policy.env, **self.start.more, **command.env}
        )
        try:
            ours, theirs = socket.socketpair()
            open_files.enter_context(ours)
            with theirs, ExitStack() as handed_over:
                outputs, descriptors = [], [theirs.fileno()]
                for sink in sinks:
                    readable, writable = os.pipe()
                    open_files.callback(os.close, readable)
                    handed_over.callback(os.close, writable)
                    os.set_blocking(readable, False)
                    outputs.append(_Output(readable, sink))
                    descriptors.append(writable)
                await self._send(body, descriptors)
        except OSError as error:
            raise SandboxError(f"cannot start {command.argv[0]!r}: {error}") from error
        return _Channel(trio.socket.from_stdlib_socket(ours), tuple(outputs))

    async def _send(self, body: bytes, descriptors: list[int]) -> None:
        rights = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
        beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        head = len(body).to_bytes(4, "big")
        async with self.turn:
            with trio.CancelScope(shield=True):  # half a request would garble the next
                if not self.ready:
                    await self._order()
                await self.control.sendmsg([head], beside)
                await self._whole(body)

    async def _order(self) -> None:
        """Once, before the first request. Raises: SandboxError when it cannot be obeyed."""
        orders = marshal.dumps(dict(self.start.orders))
        answer = b""
        try:
            await self._whole(len(orders).to_bytes(4, "big") + orders)
            answer = await self.control.recv(CHUNK)
            await self.held()
        except OSError:
            pass  # it is gone; why it has said
        if answer != b"ready":
            self.said.seek(0)
            why = answer.removeprefix(b"error ") or self.said.read(2000)
            told = why.decode("utf-8", "replace").strip() or "it ended without a word"
            raise SandboxError(f"cannot start the sandbox: {told}")
        self.ready = True

    async def _whole(self, body: bytes) -> None:
        left = memoryview(body)
        while left:
            left = left[await self.control.send(left) :]


@frozen
class _Channel:
    """One running command: its lifeline, on which the answer comes, and its output."""

    lifeline: trio.socket.SocketType
    outputs: tuple[_Output, ...]

    async def end(self, seconds: float | None) -> tuple[bytes, bool]:
        """(answer, timed out). The tree is dead when this returns or is cancelled."""
        try:
            with trio.move_on_after(float("inf") if seconds is None else seconds) as limit:
                answer = await self._answer()
        except trio.Cancelled:
            await self._kill()
            raise
        return (await self._kill(), True) if limit.cancelled_caught else (answer, False)

    async def _answer(self) -> bytes:
        answer = b""
        try:
            while piece := await self.lifeline.recv(CHUNK):
                answer += piece
        except ConnectionResetError:
            pass
        return answer

    async def _kill(self) -> bytes:
        answers = [b"survivors"]
        with trio.CancelScope(shield=True), trio.move_on_after(KILL_SECONDS):
            self.lifeline.shutdown(socket.SHUT_WR)
            answers.append(await self._answer())
        return answers[-1]


def _exit_code(answer: bytes, command: Command, env: Mapping[str, str]) -> int:
    kind, _, text = answer.decode("utf-8", "replace").partition(" ")
    program = command.argv[0]
    match kind:
        case "exit" | "crowd":
            return int(text)
        case "error" if text.startswith("folder: "):
            raise SandboxError(f"cannot run {program!r} in {str(command.cwd)!r}: {text[8:]}")
        case "error" if "No such file" in text and "/" not in program:
            raise SandboxError(
                f"cannot run {program!r}: no such program on PATH ({env.get('PATH', 'unset')})"
            )
        case "error":
            raise SandboxError(f"cannot run {program!r}: {text.partition(': ')[2]}")
        case "unkept":
            raise SandboxError(
                f"the supervisor of {program!r} was killed or stopped; all that it ran was killed"
            )
        case "survivors":
            raise SandboxError(f"processes of {program!r} could not be killed")
        case _:
            raise SandboxError(
                f"the process supervisor died while {program!r} ran; was it killed from outside?"
            )


def _encode(command: Command, cwd: Path, env: Mapping[str, str]) -> bytes:
    """Raises: SandboxError for an empty argv or text that no program can be given."""
    if not command.argv:
        raise SandboxError("cannot run an empty command")
    argv = [os.fsencode(word) for word in command.argv]
    variables = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    folder = os.fsencode(cwd / command.cwd)
    if any(b"\0" in text for text in (*argv, folder, *variables.values())):
        raise SandboxError(f"cannot run {command.argv[0]!r}: it holds a NUL character")
    return marshal.dumps((argv, folder, variables))
