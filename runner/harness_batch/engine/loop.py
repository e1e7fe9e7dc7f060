"""The agent loop with I/O: asks turns.py what comes next and does just that."""

from typing import Literal

import trio
from attrs import define, field

from harness_batch.engine.children import Children
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
    AwaitJobs,
    FeedResults,
    MakeRoom,
    Remind,
    Situation,
    Stop,
    WrapUp,
    next_step,
)
from harness_batch.engine.wrap_up import wrap_up_note
from harness_batch.errors import ContextOverflow, ProviderError
from harness_batch.models.protocol import Model


@define
class Loop:
    """One attempt's conversation from the user's prompt to its ending."""

    stepper: Stepper
    transcript: Transcript
    runner: ToolRunner
    spend: Spend
    compactor: Compactor
    children: Children
    on_denial: Literal["continue", "fail"] | int = "continue"
    needs_final_output: bool = False
    fallbacks: list[Model] = field(factory=list)
    """Models to ask in place of one that fails before it has said anything."""
    reminders: int = field(default=0)
    just_fed: bool = field(default=False)
    wrapped_up: bool = field(default=False)
    """The model was told that its limits are nearly used up."""

    async def run(self, prompt: str, *, synthetic: bool = False) -> Ending:
        """Converse until turns.py says stop, or the provider fails for good.

        `synthetic`: the words are the runner's, not the user's.
        """
        self.transcript.say(prompt, synthetic=synthetic)
        async with self.children.at_work():
            return await self._converse()

    async def _converse(self) -> Ending:
        while True:
            match next_step(self._situation()):
                case Stop(ending=ending):
                    return ending
                case Remind(text=text):
                    self.reminders += 1
                    self.transcript.say(text, synthetic=True)
                case WrapUp(text=text):
                    self.wrapped_up = True
                    self.transcript.say(text, synthetic=True)
                case MakeRoom():
                    if (failed := await self._make_room()) is not None:
                        return failed
                case AwaitJobs():
                    await self.children.jobs.all_ended()
                case FeedResults():
                    self.transcript.say(self.children.jobs.feed(), synthetic=True)
                    self.just_fed = True
                case AskModel(last=last):
                    self._show_board()
                    note = LAST_ANSWER_NOTE if self.needs_final_output else LAST_STEP_NOTE
                    if last and self.spend.steps and not self.transcript.ends_with(note):
                        self.transcript.say(note, synthetic=True)
                    if (ending_ := await self._ask(last=last)) is not None:
                        return ending_

    def _show_board(self) -> None:
        """A new board stands after the newest tool results and is never changed again."""
        news = self.children.board()
        if news is not None:
            self.transcript.say(news, synthetic=True)

    async def _ask(self, *, last: bool) -> Ending | None:
        try:
            outcome = await self.stepper.take(last=last)
        except ContextOverflow as overflow:
            return await self._make_room(overflow)
        except ProviderError as error:
            return None if self._fall_back(error) else broke(error)
        self.compactor.replied()
        self.just_fed = False
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

    async def _make_room(self, overflow: ContextOverflow | None = None) -> Ending | None:
        try:
            return await self.compactor.make_room(overflow)
        except ProviderError as error:
            return broke(error)

    def _situation(self) -> Situation:
        return Situation(
            reply=self.transcript.newest_reply(),
            steps=self.spend.steps,
            limits=self.spend.limits,
            denials=self.runner.denials,
            on_denial=self.on_denial,
            doom_loop=self.runner.doom_loop,
            final_output=self.runner.final_output,
            needs_final_output=self.needs_final_output,
            rejected=self.runner.rejected,
            corrections=self.runner.corrections,
            reminders=self.reminders,
            window_full=self.compactor.window_full(),
            over_tool_calls=self.runner.over_limit,
            jobs_running=self.children.jobs.running(),
            results_unfed=self.children.jobs.unfed(),
            just_fed=self.just_fed,
            wrap_up=self._wrap_up(),
            short=self.stepper.short,
        )

    def _wrap_up(self) -> str | None:
        if self.wrapped_up:
            return None
        return wrap_up_note(self.spend, self.stepper.stop, trio.current_time())


def broke(error: ProviderError) -> Broke:
    """A provider's failure as an ending, with the stable reason of its kind."""
    overflow = isinstance(error, ContextOverflow)
    reason = "context_overflow" if overflow else f"provider_{error.kind}"
    return Broke(reason, str(error), "provider", retryable=error.retryable)
