"""One step: a request, its reply read while tools run, retries around it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from hashlib import blake2b

import trio
from attrs import define, field, frozen

from harness_batch.engine import retry
from harness_batch.engine.admission import Admission, Knock, Slot, Unlimited
from harness_batch.engine.endings import Stopped
from harness_batch.engine.log import AttemptLog
from harness_batch.engine.model_calls import ModelCalls, OpenCall
from harness_batch.engine.reply import Reply
from harness_batch.engine.spend import Allowance, Busy, Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.stream_parts import StreamParts
from harness_batch.engine.tool_calls import ToolRunner
from harness_batch.engine.transcript import Transcript, byte_length
from harness_batch.errors import (
    AuthFailed,
    ModelRejected,
    ProviderError,
)
from harness_batch.messages import StepFinish, StepStart, TokenUsage, Turn
from harness_batch.models.protocol import Model, ModelRequest, Only, ToolChoice
from harness_batch.models.quotas import least_left
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
    admission: Admission = field(factory=Unlimited)
    chance: random.Random = field(factory=random.Random)
    short: Stopped | None = None
    """The limit that took room from the newest reply, when the reply was cut off for it."""
    calls: ModelCalls = field(init=False)
    fixed_size: int = field(init=False)
    """Bytes of system prompt and tools: what every request carries beside the transcript."""
    _prefix: str = field(init=False)
    _sent: int = 0
    """Requests for the step under way, of all models that were asked."""

    def __attrs_post_init__(self) -> None:
        self.use(self.model)
        self.fixed_size = sum(map(byte_length, self.system)) + sum(
            byte_length(spec.description) + byte_length(str(spec.parameters))
            for spec in self.runner.specs
        )
        fixed = "\0".join((*self.system, *map(str, self.runner.specs)))
        self._prefix = blake2b(fixed.encode("utf-8", "replace"), digest_size=16).hexdigest()

    def use(self, model: Model) -> None:
        """Ask this model from now on."""
        self.model = model
        self.transcript.model = str(model.ref)
        self.calls = ModelCalls(self.log, self.spend, model.ref, model.info, self.purpose)

    async def take(self, *, last: bool) -> Turn | Stopped:
        """One reply with its tool calls answered, or the limit that forbids to ask for it.

        Raises: ProviderError when the provider failed and trying again is pointless.
        """
        self.spend.steps += self.purpose == "step"
        outcome: Turn | Stopped | None = None
        try:
            outcome = await self._until_answered(last=last)
        except ProviderError as error:
            self.admission.given_up(self.model.ref, error)
            raise
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
            match await self._once(choice, last=last, again=tries > 0):
                case Turn() | Stopped() as outcome:
                    return outcome
                case BrokenOff(error=error, consumed=True):
                    redos += 1
                    if redos > REDOS or not error.retryable:
                        raise error
                case BrokenOff(error=ModelRejected(status=400)) if isinstance(choice, Only):
                    choice = "auto"  # some servers know no choice of a tool by its name
                case BrokenOff(error=ModelRejected() as error) if self.transcript.drop_new_images():
                    self.log.notice(f"{error}; once more without the image")
                case BrokenOff(error=AuthFailed(status=401) as error) if not renewed:
                    renewed = True
                    await self._renew(error)
                case BrokenOff(error=error):
                    await self._wait(error, tries + 1)
            tries += 1

    async def _once(
        self, choice: ToolChoice, *, last: bool, again: bool
    ) -> Turn | Stopped | BrokenOff:
        slot = await self._admitted(again=again)
        try:
            size = self.transcript.size + self.fixed_size
            allowance = await self._allowed(size)
            if isinstance(allowance, Stopped):
                return allowance
            return await self._attempt(allowance, size, choice, slot, last=last)
        finally:
            slot.release()

    async def _admitted(self, *, again: bool) -> Slot:
        knock = Knock(
            ref=self.model.ref,
            prefix=self._prefix,
            prefix_bytes=self.fixed_size,
            first=self.purpose == "step" and self.spend.steps == 1 and not again,
            again=again,
            deadline=self.stop.deadline,
        )
        with self._waiting():
            return await self.admission.admit(knock)

    async def _renew(self, refused: AuthFailed) -> None:
        """Raises: ProviderError when there is no other credential than the refused one."""
        if not await self.model.renew():
            raise refused
        self.log.notice(f"{refused}; trying once more with a renewed credential")

    async def _allowed(self, size: int) -> Allowance | Stopped:
        while isinstance(
            allowance := self.spend.allow(size, self.calls.info_now(), self.most_output_tokens),
            Busy,
        ):
            await allowance.budget.settled()
        return allowance

    async def _attempt(
        self, allowance: Allowance, size: int, choice: ToolChoice, slot: Slot, *, last: bool
    ) -> Turn | BrokenOff:
        draft = self.transcript.reply()
        draft.add(StepStart(step=self.spend.steps))
        self._sent += 1
        call = self.calls.open(draft.message.id, allowance, size, self._sent)
        reply = Reply(self.model, self.runner, draft, last, partial(self._read, call, slot), slot)
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

    def _read(
        self, call: OpenCall, slot: Slot, parts: StreamParts, error: ProviderError | None
    ) -> Decimal | None:
        """The provider has said its last word. Tools run on without the slot: children want it."""
        if error is None:
            slot.replied(least_left(parts.quotas))
        else:
            slot.failed(error)
        slot.release()
        return self.calls.close(call, parts, error)

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
        with self._waiting():
            await trio.sleep(seconds)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Time that the provider keeps us waiting is no working time."""
        began = trio.current_time()
        try:
            with self.stop.waiting():
                yield
        finally:
            self.spend.waited_s += trio.current_time() - began
