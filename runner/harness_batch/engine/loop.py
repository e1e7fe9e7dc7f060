"""The agent loop with I/O: asks turns.py what comes next and does just that."""

from typing import Literal

from attrs import define, field

from harness_batch.engine.children import Children
from harness_batch.engine.compactor import Compactor
from harness_batch.engine.endings import Broke, Ending, Stopped
from harness_batch.engine.spend import Spend
from harness_batch.engine.step import Stepper
from harness_batch.engine.tool_calls import ToolRunner
from harness_batch.engine.transcript import Transcript
from harness_batch.engine.turns import (
    LAST_STEP_NOTE,
    AskModel,
    AwaitJobs,
    FeedResults,
    MakeRoom,
    Remind,
    Situation,
    Stop,
    next_step,
)
from harness_batch.errors import ContextOverflow, ProviderError
from harness_batch.messages import Turn


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
    reminders: int = field(default=0)
    just_fed: bool = field(default=False)

    async def run(self, prompt: str) -> Ending:
        """Converse until turns.py says stop, or the provider fails for good."""
        self.transcript.say(prompt)
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
                case MakeRoom():
                    if (failed := await self._make_room(overflowed=False)) is not None:
                        return failed
                case AwaitJobs():
                    await self.children.jobs.all_ended()
                case FeedResults():
                    self.transcript.say(self.children.jobs.feed(), synthetic=True)
                    self.just_fed = True
                case AskModel(last=last):
                    self._show_board()
                    if last and self.spend.steps:
                        self.transcript.say(LAST_STEP_NOTE, synthetic=True)
                    ending_ = await self._ask(last=last)
                    if ending_ is not None:
                        return ending_

    def _show_board(self) -> None:
        """A new board stands after the newest tool results and is never changed again."""
        news = self.children.board()
        if news is not None:
            self.transcript.say(news, synthetic=True)

    async def _ask(self, *, last: bool) -> Ending | None:
        try:
            outcome = await self.stepper.take(last=last)
        except ContextOverflow:
            return await self._make_room(overflowed=True)
        except ProviderError as error:
            return broke(error)
        self.compactor.just_made_room = False
        self.just_fed = False
        return outcome if isinstance(outcome, Stopped) else None

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
            reminders=self.reminders,
            window_full=self.compactor.window_full(reply),
            over_tool_calls=self.runner.over_limit,
            jobs_running=self.children.jobs.running(),
            results_unfed=self.children.jobs.unfed(),
            just_fed=self.just_fed,
        )


def broke(error: ProviderError) -> Broke:
    """A provider's failure as an ending, with the stable reason of its kind."""
    overflow = isinstance(error, ContextOverflow)
    reason = "context_overflow" if overflow else f"provider_{error.kind}"
    return Broke(reason, str(error), "provider", retryable=error.retryable)
