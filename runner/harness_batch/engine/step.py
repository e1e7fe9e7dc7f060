"""One step: a request, its reply read while tools run, retries around it."""

import math
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import trio
from attrs import define, field, frozen

from harness_batch.engine import retry
from harness_batch.engine.endings import Stopped
from harness_batch.engine.log import AttemptLog
from harness_batch.engine.model_calls import ModelCalls
from harness_batch.engine.spend import Allowance, Busy, Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.stream_parts import StreamParts
from harness_batch.engine.tool_calls import ToolRunner
from harness_batch.engine.transcript import Draft, Transcript, byte_length
from harness_batch.errors import (
    AuthFailed,
    ModelRejected,
    NetworkFailure,
    ProviderError,
    only_cause,
)
from harness_batch.messages import Part, StepFinish, StepStart, TokenUsage, Turn
from harness_batch.models.protocol import Model, ModelRequest, Only, ToolCall, ToolChoice
from harness_batch.records import Purpose

REDOS = 1
"""How often a step is asked for again whose reply broke off before anything was executed."""


@frozen
class BrokenOff:
    """The stream failed before a tool was executed."""

    error: ProviderError
    consumed: bool
    """Some of the reply had arrived."""


@define
class Stepper:
    """Takes the steps of one attempt."""

    log: AttemptLog
    model: Model
    system: tuple[str, ...]
    transcript: Transcript
    runner: ToolRunner
    spend: Spend
    stop: StopSignal
    temperature: float | None = None
    purpose: Purpose = "step"
    most_output_tokens: int | None = None
    last_choice: ToolChoice = "none"
    """What the last allowed step may still call."""
    chance: random.Random = field(factory=random.Random)
    short: Stopped | None = None
    """The limit that took room from the newest reply, when the reply was cut off for it."""
    calls: ModelCalls = field(init=False)
    fixed_size: int = field(init=False)
    """Bytes of system prompt and tools: what every request carries beside the transcript."""
    _sent: int = 0
    """Requests for the step under way, of all models that were asked."""

    def __attrs_post_init__(self) -> None:
        self.use(self.model)
        self.fixed_size = sum(map(byte_length, self.system)) + sum(
            byte_length(spec.description) + byte_length(str(spec.parameters))
            for spec in self.runner.specs
        )

    def use(self, model: Model) -> None:
        """Ask this model from now on."""
        self.model = model
        self.transcript.model = str(model.ref)
        self.calls = ModelCalls(self.log, self.spend, model.ref, model.info.prices, self.purpose)

    async def take(self, *, last: bool) -> Turn | Stopped:
        """One reply with its tool calls answered, or the limit that forbids to ask for it.

        Raises: ProviderError when the provider failed and trying again is pointless.
        """
        self.spend.steps += self.purpose == "step"
        outcome: Turn | Stopped | None = None
        try:
            outcome = await self._until_answered(last=last)
        finally:
            if isinstance(outcome, Turn):
                self._sent = 0
            else:
                # Steps are replies; there was none.
                self.spend.steps -= self.purpose == "step"
        return outcome

    async def _until_answered(self, *, last: bool) -> Turn | Stopped:
        self.model.demand()  # before a row is opened: rows are requests that were sent
        tries, redos, renewed = 0, 0, False
        choice: ToolChoice = self.last_choice if last else "auto"
        while True:
            size = self.transcript.size + self.fixed_size
            allowance = await self._allowed(size)
            if isinstance(allowance, Stopped):
                return allowance
            tries += 1
            match await self._attempt(allowance, size, choice, last=last):
                case Turn() as turn:
                    return turn
                case BrokenOff(error=error, consumed=True):
                    redos += 1
                    if redos > REDOS or not error.retryable:
                        raise error
                case BrokenOff(error=ModelRejected(status=400)) if isinstance(choice, Only):
                    choice = "auto"  # some servers know no choice of a tool by its name
                case BrokenOff(error=AuthFailed(status=401) as error) if not renewed:
                    renewed = True
                    await self._renew(error)
                case BrokenOff(error=error):
                    await self._wait(error, tries)

    async def _renew(self, refused: AuthFailed) -> None:
        """Raises: ProviderError when there is no other credential than the refused one."""
        if not await self.model.renew():
            raise refused
        self.log.notice(f"{refused}; trying once more with a renewed credential")

    async def _allowed(self, size: int) -> Allowance | Stopped:
        while isinstance(
            allowance := self.spend.allow(size, self.model.info, self.most_output_tokens), Busy
        ):
            await allowance.budget.settled()
        return allowance

    async def _attempt(
        self, allowance: Allowance, size: int, choice: ToolChoice, *, last: bool
    ) -> Turn | BrokenOff:
        draft = self.transcript.reply()
        draft.add(StepStart(step=self.spend.steps))
        self._sent += 1
        call = self.calls.open(draft.message.id, allowance, size, self._sent)
        reply = Reply(self.model, self.runner, draft, last, partial(self.calls.close, call))
        try:
            # The intent must be on the disk before money can be spent on it.
            await self.log.log.sync()
            await reply.read(self._request(allowance, choice))
        except BaseException:
            if not reply.is_read:
                self.calls.abort(call, reply.parts)
            reply.parts.close_open_parts()
            draft.interrupt()
            raise
        reply.parts.close_open_parts()
        if reply.error is not None and not reply.executed:
            draft.finish(None, reply.error.kind)
            return BrokenOff(reply.error, reply.parts.consumed)
        finish = reply.parts.finish
        reason = finish.reason if finish else "unknown"
        self.short = self.spend.cut_off(allowance) if reason == "length" else None
        usage = finish.usage if finish and finish.usage else TokenUsage()
        draft.add(
            StepFinish(
                usage=usage, cost_usd=None if reply.usd is None else str(reply.usd), reason=reason
            )
        )
        turn = draft.finish(reason)
        self.transcript.keep(turn)
        return turn

    def _request(self, allowance: Allowance, choice: ToolChoice) -> ModelRequest:
        return ModelRequest(
            system=self.system,
            turns=self.transcript.turns,
            tools=self.runner.specs,
            max_output_tokens=allowance.max_output_tokens,
            tool_choice=choice,
            temperature=self.temperature,
        )

    async def _wait(self, error: ProviderError, tries: int) -> None:
        seconds = retry.delay(error, tries, self.chance)
        if seconds is None:
            raise error
        if trio.current_time() + seconds >= self.stop.deadline:
            self.log.notice(f"no retry: waiting {seconds:.0f} s would pass the time limit")
            raise error
        self.log.notice(f"{error}; next try in {seconds:.1f} s")
        self.stop.extend(seconds)
        began = trio.current_time()
        try:
            await trio.sleep(seconds)
        finally:
            self.spend.waited_s += trio.current_time() - began


@define
class Reply:
    """One reply being read: a reader and an executor, joined by a channel.

    The stream is read on while a tool runs, so that a slow tool neither stalls the connection nor
    trips the server's own timeout.
    """

    model: Model
    runner: ToolRunner
    draft: Draft
    tools_off: bool
    on_end: Callable[[StreamParts, ProviderError | None], Decimal | None]
    """Called when the provider has said its last word, tools may run on; returns the cost."""
    parts: StreamParts = field(init=False)
    error: ProviderError | None = None
    executed: bool = False
    is_read: bool = False
    usd: Decimal | None = None
    _send: trio.MemorySendChannel[tuple[ToolCall, Part]] = field(init=False)
    _receive: trio.MemoryReceiveChannel[tuple[ToolCall, Part]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        # Unbounded: the model's own output limit bounds it, and the reader must never wait.
        self._send, self._receive = trio.open_memory_channel(math.inf)
        self.parts = StreamParts(self.draft, self._hand_on)

    async def read(self, request: ModelRequest) -> None:
        """Read to the end; what the provider did wrong is in `error` afterwards."""
        with only_cause():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._execute)
                async with self._send:
                    try:
                        await self._take_all(request)
                    except ProviderError as error:
                        self.error = error
                    self.is_read = True
                    self.usd = self.on_end(self.parts, self.error)

    async def _take_all(self, request: ModelRequest) -> None:
        async with self.model.stream(request) as batches:
            async for batch in batches:
                self.parts.take(batch)
                if self.parts.first_at is None and self.parts.consumed:
                    self.parts.first_at = trio.current_time()
        if self.parts.finish is None:
            raise NetworkFailure("the stream ended before its end mark")

    async def _execute(self) -> None:
        async for call, part in self._receive:
            self.executed = True
            await self.runner.answer(call, part, self.draft, tools_off=self.tools_off)

    def _hand_on(self, call: ToolCall, part: Part) -> None:
        self._send.send_nowait((call, part))
