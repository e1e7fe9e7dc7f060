"""Is there another attempt after this one, and how does it begin? Pure; session.py does it.

Goose's form: the checks of `retry` run after the agent has finished, and when one fails the
conversation begins again, in the workspace as it is, at most `max_retries` times. Ours: with
`feedback` it goes on with what failed, and the recipe's own checks ask for another attempt too;
with `reset` the workspace begins again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from harness_batch.engine.endings import Answered, Ending
from harness_batch.engine.spend import Spend
from harness_batch.recipe.record import RetryRule
from harness_batch.records import CheckResult

FEEDBACK_CHARACTERS = 20_000
"""Of all outputs in one message together; goose's number."""


@frozen
class Done:
    """This attempt's outcome is the session's. `why` tells people what forbids another one."""

    why: str | None = None


@frozen
class Anew:
    """Another attempt, whose conversation begins at the prompt."""

    reset: bool = False
    """In a workspace that was put back to its base."""


@frozen
class GoOn:
    """Another attempt, in which the conversation goes on with what failed."""

    failed: tuple[CheckResult, ...]
    reset: bool = False
    """In a workspace that was put back to its base."""


Following: TypeAlias = Done | Anew | GoOn


@frozen(kw_only=True)
class Ended:
    """An attempt as the decision sees it."""

    ending: Ending
    checks: Sequence[CheckResult] = ()
    """Of the recipe."""
    retry_checks: Sequence[CheckResult] = ()
    attempts: int = 1
    """How many there were, with this one."""
    used_up: str | None = None
    """A limit of the session without which no model can be asked."""


def following(ended: Ended, rule: RetryRule | None) -> Following:
    """What comes after the attempt. Only failing checks ask for another one."""
    if rule is None or not isinstance(ended.ending, Answered):
        return Done()
    asking = (*ended.checks, *ended.retry_checks) if rule.feedback else ended.retry_checks
    failed = tuple(check for check in asking if not check.passed)
    if not failed or ended.attempts > rule.max_retries:
        return Done()
    if ended.used_up is not None:
        return Done(f"no further attempt: the limit {ended.used_up} is used up")
    return GoOn(failed, rule.reset) if rule.feedback else Anew(rule.reset)


def used_up(spend: Spend) -> str | None:
    """The limit that leaves no room for a reply, by its name."""
    limits = spend.limits
    if limits.steps is not None and spend.steps >= limits.steps:
        return "steps"
    if limits.tokens is not None and spend.tokens >= limits.tokens:
        return "tokens"
    return None


def feedback(
    step: GoOn, commands: Mapping[str, str], recovery: CheckResult | None, *, schema: bool
) -> str:
    """What the model is told. `commands`: the shell command of each check, by its name."""
    finish = "finish again" + (" by calling `final_output`" if schema else "")
    return "\n\n".join(
        (
            "The result was checked, and it does not hold yet.",
            *_blocks((*step.failed, *((recovery,) if recovery else ())), commands),
            *_notes(step, recovery),
            f"Find out why, mend it, and {finish}.",
        )
    )


def _blocks(results: Sequence[CheckResult], commands: Mapping[str, str]) -> Iterator[str]:
    left = FEEDBACK_CHARACTERS
    for result in results:
        fate = "succeeded" if result.passed else result.reason or "failed"
        head = f"{result.name} (`{commands.get(result.name, '')}`): {fate}"
        output = (result.output or "").rstrip()
        kept = output[max(0, len(output) - left) :]
        left -= len(kept)
        if len(kept) < len(output):
            kept = f"[... {len(output) - len(kept)} characters left out ...]\n{kept}"
        yield f"{head}\n<output>\n{kept}\n</output>" if kept else head


def _notes(step: GoOn, recovery: CheckResult | None) -> Iterator[str]:
    if recovery is not None:
        yield "The last of these is the command that cleans up after a failure."
    if step.reset:
        yield (
            "The workspace was put back to its base: your changes are gone, and files must be read"
            " again."
        )
