"""The agent loop without I/O: what happened so far in, next step out. loop.py obeys."""

from typing import Literal, TypeAlias

from attrs import evolve, frozen

from harness_batch.engine.endings import Answered, Ending, Stopped
from harness_batch.limits import Limits
from harness_batch.messages import Turn

MAX_SCHEMA_REMINDERS = 3
"""How often a model that answers in prose is asked for `final_output` before it has failed."""
MAX_SCHEMA_CORRECTIONS = 8
"""How many calls of `final_output` may not fit the schema before the session has failed."""

LAST_STEP_NOTE = (
    "This was the last step that may use tools; tools are off now. Answer in text only: say that"
    " the step limit was reached, what is done, what remains, and what should come next."
)
LAST_ANSWER_NOTE = (
    "This is the last step: all tools but `final_output` are off now. Call `final_output` with the"
    " result as far as it goes."
)
SCHEMA_NOTE = (
    "The session ends only by a call of the tool `final_output` with arguments that match its"
    " schema. Call it now with your result."
)


@frozen
class AskModel:
    """Send the transcript. In the last allowed step tools are off, all but `final_output`."""

    last: bool = False


@frozen
class MakeRoom:
    """The window is full: prune or summarise, then decide again."""


@frozen
class AwaitJobs:
    """The model is done but background children are not: wait for all of them, then decide."""


@frozen
class FeedResults:
    """Tell the model what background children came to, then decide again."""


@frozen
class Remind:
    """Say this to the model, then decide again."""

    text: str


@frozen
class WrapUp:
    """Say this to the model, once in a session, then decide again."""

    text: str


@frozen
class Stop:
    """The agent's part is over."""

    ending: Ending


Next: TypeAlias = AskModel | MakeRoom | AwaitJobs | FeedResults | Remind | WrapUp | Stop


@frozen
class Rejected:
    """A call of `final_output` that does not fit the schema: its arguments as text, and why."""

    answer: str
    fault: str


@frozen(kw_only=True)
class Situation:
    """Everything the decision looks at."""

    reply: Turn | None
    """The newest turn when it is the model's; None before the first and after a reminder."""
    steps: int
    """Model replies so far."""
    limits: Limits
    denials: int = 0
    on_denial: Literal["continue", "fail"] | int = "continue"
    doom_loop: str | None = None
    """Words on the repetition that no rule allows."""
    final_output: str | None = None
    """Accepted arguments of `final_output`, as JSON text."""
    needs_final_output: bool = False
    rejected: Rejected | None = None
    """The newest call of `final_output` that was refused."""
    corrections: int = 0
    """How many of them there were."""
    reminders: int = 0
    window_full: bool = False
    """The newest report says that the next request may not fit."""
    over_tool_calls: bool = False
    """A call was refused because `limits.tool_calls` was used up."""
    jobs_running: int = 0
    """Background children that have not ended."""
    results_unfed: int = 0
    """Background children that have ended without the model having been told."""
    just_fed: bool = False
    """The model was told results and has not replied since."""
    wrap_up: str | None = None
    """What to say to a model whose limits are nearly used up; None: enough is left, or was said."""
    short: Stopped | None = None
    """The limit for whose sake the newest reply was given less room than it might have had."""


def next_step(now: Situation) -> Next:
    """What to do next. The only place that ends a session on the model's account."""
    if now.doom_loop is not None:
        return Stop(Stopped("doom_loop", now.doom_loop))
    if _too_many_denials(now):
        return Stop(Stopped("permission", f"{now.denials} tool call(s) denied by the rules"))
    if now.final_output is not None:
        return _with_the_answer(now, now.final_output)
    if now.over_tool_calls:
        detail = f"the limit tool_calls ({now.limits.tool_calls}) is used up"
        return Stop(Stopped("max_tool_calls", detail))
    if now.reply is None:
        return _ask(now)
    return _after(now, now.reply)


def _with_the_answer(now: Situation, answer: str) -> Next:
    # After results were fed in the model has the word once more, and the answer stands by then.
    return _ask(now) if now.just_fed else _settled(now, answer)


def _settled(now: Situation, answer: str) -> Next:
    """A session does not end before its jobs have, and has told the model how."""
    if now.jobs_running:
        return AwaitJobs()
    fed = not now.results_unfed or _out_of_steps(now)
    return Stop(Answered(answer)) if fed else FeedResults()


def _after(now: Situation, reply: Turn) -> Next:
    cut = _cut_short(now, reply)
    if cut is not None:
        return Stop(cut)
    if now.corrections >= MAX_SCHEMA_CORRECTIONS:
        return Stop(_no_answer(now, f"{now.corrections} calls of final_output were invalid", reply))
    if reply.tool_uses():
        return _ask(now)
    if not now.needs_final_output or now.jobs_running or now.results_unfed:
        return _settled(now, reply.text())
    if now.reminders < MAX_SCHEMA_REMINDERS:
        return Remind(SCHEMA_NOTE)
    return Stop(_no_answer(now, f"no valid final_output after {now.reminders} reminders", reply))


def _no_answer(now: Situation, why: str, reply: Turn) -> Stopped:
    """The last thing that was meant as the answer is kept, though it is none."""
    if now.rejected is None:
        return Stopped("schema", why, reply.text())
    return Stopped("schema", f"{why}; the last one: {now.rejected.fault}", now.rejected.answer)


def _cut_short(now: Situation, reply: Turn) -> Stopped | None:
    text = reply.text()
    match reply.message.finish_reason:
        case "length" if now.short is not None:
            return evolve(now.short, answer=text)
        case "length":
            detail = "the reply was cut off by the limit of output tokens"
            return Stopped("output_length", detail, text)
        case "content_filter":
            return Stopped("content_filter", "the provider's content filter ended it", text)
        case _:
            pass
    if not _out_of_steps(now):
        return None
    used_up = f"the limit steps ({now.limits.steps}) is used up"
    if now.rejected is not None:
        return _no_answer(now, used_up, reply)
    return Stopped("max_steps", used_up, text)


def _ask(now: Situation) -> Next:
    if _out_of_steps(now):
        return Stop(Stopped("max_steps", f"the limit steps ({now.limits.steps}) is used up"))
    if now.results_unfed:
        return FeedResults()
    if now.window_full:
        return MakeRoom()
    if now.limits.steps is not None and now.steps + 1 >= now.limits.steps:
        return AskModel(last=True)
    return WrapUp(now.wrap_up) if now.wrap_up is not None else AskModel()


def _out_of_steps(now: Situation) -> bool:
    return now.limits.steps is not None and now.steps >= now.limits.steps


def _too_many_denials(now: Situation) -> bool:
    match now.on_denial:
        case "continue":
            return False
        case "fail":
            return now.denials > 0
        case number:
            return now.denials >= number
