"""A recipe's sub-recipe as a tool: its parameters are the arguments, its run is a child session."""

from collections.abc import Sequence

from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.delegates import Delegates, result_of
from harness_batch.tools.protocol import ToolContext, ToolResult

_ABOUT = (
    "Runs in a session of its own that sees nothing of this conversation; the result holds its"
    " session id, its state and its answer."
)


@frozen(kw_only=True)
class SubRecipeTool:
    """One call, one run of the sub-recipe."""

    delegates: Delegates
    name: str
    about: str
    """The recipe's own words."""
    parameters: JsonObject
    permission: str = "task"

    @property
    def description(self) -> str:
        """What it does, and how."""
        return f"{self.about.strip()}\n\n{_ABOUT}" if self.about.strip() else _ABOUT

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`task` with the sub-recipe's name."""
        del arguments, context
        return (Ask("task", self.name),)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Run it to its end and tell what came of it."""
        del context, call_id
        return result_of(await self.delegates.run_recipe(self.name, arguments), self.name)
