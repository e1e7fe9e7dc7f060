"""When to tell a model to come to its end, before a limit cuts it off. Pure."""

from collections.abc import Iterator

from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal

SHARE = 0.8
"""Of a limit; once so much of it is used, the model is told."""

NOTE = (
    "More than {share:.0%} of what this session may use is used up ({what}). Wrap up now: begin"
    " nothing new, bring what you are at to a state that works, and give your answer."
)


def wrap_up_note(spend: Spend, stop: StopSignal, now: float) -> str | None:
    """What to say to the model; None while there is enough left. `now` is on trio's clock."""
    what = ", ".join(_short_of(spend, stop, now))
    return NOTE.format(share=SHARE, what=what) if what else None


def _short_of(spend: Spend, stop: StopSignal, now: float) -> Iterator[str]:
    limits = spend.limits
    if any(level.running_low() for level in spend.budget.levels()):
        yield "cost"
    if limits.tokens is not None and spend.tokens >= SHARE * limits.tokens:
        yield "tokens"
    clocks = (
        (limits.seconds, stop.deadline, "time"),
        (limits.working_seconds, stop.working_deadline, "working time"),
    )
    for seconds, deadline, name in clocks:
        if seconds is not None and deadline - now <= seconds - SHARE * seconds:
            yield name
