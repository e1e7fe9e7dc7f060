"""Starting child sessions, as the tools `task` and sub-recipes see it; the engine does it.

A child's failure is a report like any other: the parent reads it and goes on.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.tools.protocol import ToolResult


@frozen(kw_only=True)
class Errand:
    """What a child is to do."""

    description: str
    """A few words for people."""
    prompt: str
    agent: str
    session: str | None = None
    """A child of this session that is to go on, in place of a new one."""
    background: bool = False
    """The parent does not wait; the result comes later."""


@frozen(kw_only=True)
class Report:
    """How a child stands after it was started, or after it has ended."""

    session_id: str
    state: Literal["running", "completed", "error", "cancelled"]
    detail: str = ""
    """Why it did not complete, or what `running` means for the caller."""
    answer: str = ""

    def as_text(self) -> str:
        """For the model: id and state, then the answer."""
        state = f"{self.state} ({self.detail})" if self.detail else self.state
        head = f"session: {self.session_id}\nstate: {state}"
        return f"{head}\n\n{self.answer}" if self.answer else head


@frozen
class NotStarted:
    """No child was started; `why` is what the model reads."""

    why: str


class Delegates(Protocol):
    """The agents and sub-recipes that one session may hand work to."""

    def agents(self) -> Mapping[str, str]:
        """Those that the rules allow as children, with their descriptions."""
        ...

    def unfit(self, agent: str) -> str | None:
        """Why the agent cannot be a child at all, whatever the rules say; None when it can."""
        ...

    async def send(self, errand: Errand) -> Report | NotStarted:
        """Start a child or let one go on; returns when it has ended, or begun in the background.

        Raises nothing but Cancelled (and what ends the whole run).
        """
        ...

    async def run_recipe(self, name: str, arguments: JsonObject) -> Report | NotStarted:
        """Run the sub-recipe of that name to its end; `arguments` are valid by its schema."""
        ...


def result_of(outcome: Report | NotStarted, title: str) -> ToolResult:
    """What a tool answers: completed or begun children are results, the rest are errors."""
    match outcome:
        case NotStarted(why=why):
            return ToolResult(output=why, title=title, status="error")
        case Report():
            fine = outcome.state in ("running", "completed")
            return ToolResult(
                output=outcome.as_text(),
                title=title,
                status="completed" if fine else "error",
                metadata={"session": outcome.session_id, "state": outcome.state},
            )
