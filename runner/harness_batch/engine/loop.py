"""The agent loop with I/O: asks turns.py what comes next and does just that."""

from typing import Literal

from attrs import define, field

from harness_batch.engine.compactor import Compactor
from harness_batch.engine.endings import Broke, Ending, Stopped
from harness_batch.engine.spend import Spend
from harness_batch.engine.step import Stepper
from harness_batch.engine.tool_calls import ToolRunner
from harness_batch.engine.transcript import Transcript
from harness_batch.engine.turns import (
    LAST_ANSWER_NOTE,
    LAST_STEP_NOTE,
    AskModel,
    MakeRoom,
    Remind,
    Situation,
    Stop,
    next_step,
)
from harness_batch.errors import ContextOverflow, ProviderError
from harness_batch.messages import Turn
from harness_batch.models.protocol import Model


@define
class Loop:
    """One attempt's conversation from the user's prompt to its ending."""

    stepper: Stepper
    transcript: Transcript
    runner: ToolRunner
    spend: Spend
    compactor: Compactor
    on_denial: Literal["continue", "fail"] | int = "continue"
    needs_final_output: bool = False
    fallbacks: list[Model] = field(factory=list)
    """Models to ask in place of one that fails before it has said anything."""
    reminders: int = field(default=0)

    async def run(self, prompt: str, *, synthetic: bool = False) -> Ending:
        """Converse until turns.py says stop, or the provider fails for good.

        `synthetic`: the words are the runner's, not the user's.
        """
        self.transcript.say(prompt, synthetic=synthetic)
        while True:
            match next_step(self._situation()):
                case Stop(ending=ending):
                    return ending
                case Remind(text=text):
                    self.reminders += 1
                    self.transcript.say(text, synthetic=True)
                case MakeRoom():
                    if (failed := await self._make_room(overflowed=False)) is not None:
                        return failed
                case AskModel(last=last):
                    if last and self.spend.steps:
                        note = LAST_ANSWER_NOTE if self.needs_final_output else LAST_STEP_NOTE
                        self.transcript.say(note, synthetic=True)
                    ending_ = await self._ask(last=last)
                    if ending_ is not None:
                        return ending_

    async def _ask(self, *, last: bool) -> Ending | None:
        try:
            outcome = await self.stepper.take(last=last)
        except ContextOverflow:
            return await self._make_room(overflowed=True)
        except ProviderError as error:
            return None if self._fall_back(error) else broke(error)
        self.compactor.just_made_room = False
        return outcome if isinstance(outcome, Stopped) else None

    def _fall_back(self, error: ProviderError) -> bool:
        """Go on with the next model of the list. Only before anything of the session was said:
        what one model did, another one could not answer for.
        """
        if self.spend.steps or not self.fallbacks:
            return False
        failed, model = self.stepper.model, self.fallbacks.pop(0)
        if self.compactor.summariser.model is failed:
            self.compactor.summariser.use(model)
        self.stepper.use(model)
        self.stepper.log.notice(f"{failed.ref} failed ({error.kind}): {error}; {model.ref} goes on")
        return True

    async def _make_room(self, *, overflowed: bool) -> Ending | None:
        reply = self.transcript.newest_reply()
        try:
            return await self.compactor.make_room(reply, overflowed=overflowed)
        except ProviderError as error:
            return broke(error)

    def _situation(self) -> Situation:
        reply: Turn | None = self.transcript.newest_reply()
        return Situation(
            reply=reply,
            steps=self.spend.steps,
            tool_calls=self.spend.tool_calls,
            limits=self.spend.limits,
            denials=self.runner.denials,
            on_denial=self.on_denial,
            doom_loop=self.runner.doom_loop,
            final_output=self.runner.final_output,
            needs_final_output=self.needs_final_output,
            rejected=self.runner.rejected,
            corrections=self.runner.corrections,
            reminders=self.reminders,
            window_full=self.compactor.window_full(reply),
            over_tool_calls=self.runner.over_limit,
        )


def broke(error: ProviderError) -> Broke:
    """A provider's failure as an ending, with the stable reason of its kind."""
    overflow = isinstance(error, ContextOverflow)
    reason = "context_overflow" if overflow else f"provider_{error.kind}"
    return Broke(reason, str(error), "provider", retryable=error.retryable)
