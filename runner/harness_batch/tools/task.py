"""The task tool: hands a piece of work to a subagent, a session of its own."""

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.delegates import Delegates, Errand, result_of
from harness_batch.tools.protocol import ToolContext, ToolResult

_ABOUT = (
    "Hands a piece of work to a subagent: a session of its own with a fresh context, in the same"
    " workspace, with at most your permissions. It sees nothing of this conversation, so put all it"
    " needs into `prompt` and say what it is to report. The result holds its session id, its state"
    " and its answer; `session` lets that child go on with what it knows. With `background: true`"
    " you go on at once and are told the result when it is there; do not wait for it by polling."
)


@frozen
class TaskTool:
    """One call, one child."""

    delegates: Delegates
    agents: Mapping[str, str] = field()
    """Who may be named, with what the model reads about them; fixed, as tools are part of the
    prefix that all requests share."""
    name: str = "task"
    permission: str = "task"

    @property
    def description(self) -> str:
        """With the agents that may be named."""
        listed = (f"- {name}: {about}".rstrip(": ") for name, about in sorted(self.agents.items()))
        return "\n".join((_ABOUT, "Agents:", *listed))

    @property
    def parameters(self) -> JsonObject:
        """`agent` is any text here: who may be named is told in words when it is wrong."""
        return {
            "type": "object",
            "properties": {
                "description": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200,
                    "description": "The work in three to seven words.",
                },
                "prompt": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The whole task, and what to report.",
                },
                "agent": {"type": "string", "description": "Who does it."},
                "session": {
                    "type": "string",
                    "description": "A child session of yours that is to go on.",
                },
                "background": {
                    "type": "boolean",
                    "description": "Go on without waiting for the result.",
                },
            },
            "required": ["description", "prompt", "agent"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`task` with the agent's name."""
        del context
        agent = arguments["agent"]
        unfit = self.delegates.unfit(agent)
        if unfit is not None:
            known = ", ".join(sorted(self.agents)) or "none"
            return ToolResult(output=f"{unfit}; agents you may use: {known}", status="error")
        return (Ask("task", agent),)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Send the child and tell what came of it."""
        del context, call_id
        errand = Errand(
            description=arguments["description"],
            prompt=arguments["prompt"],
            agent=arguments["agent"],
            session=arguments.get("session"),
            background=arguments.get("background", False),
        )
        return result_of(await self.delegates.send(errand), errand.description)
