"""The todo tool: the model's own list of what is to be done."""

from collections.abc import Sequence

from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.protocol import ToolContext, ToolResult

_MARKS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]", "cancelled": "[-]"}


@frozen
class TodoTool:
    """Replaces the session's list."""

    name: str = "todo"
    permission: str = "todo"
    description: str = (
        "Keeps your list of tasks for this session. Each call replaces the whole list, so give "
        "all items. Use it for work of three steps or more; keep one item in_progress, and mark "
        "items completed as soon as they are."
    )

    @property
    def parameters(self) -> JsonObject:
        """The whole list."""
        item = {
            "type": "object",
            "properties": {
                "content": {"type": "string", "minLength": 1, "maxLength": 1000},
                "status": {"type": "string", "enum": list(_MARKS)},
                "priority": {"type": "string", "enum": ["high", "medium", "low"]},
            },
            "required": ["content", "status"],
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "properties": {"todos": {"type": "array", "items": item, "maxItems": 200}},
            "required": ["todos"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`todo`; the pattern is the tool's name."""
        del arguments, context
        return (Ask("todo", "todo"),)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Keep the list and say it back."""
        del call_id
        todos = arguments["todos"]
        context.todos[:] = todos
        left = sum(todo["status"] in {"pending", "in_progress"} for todo in todos)
        lines = [_line(todo) for todo in todos] or ["(empty)"]
        return ToolResult(
            output="\n".join([f"{left} of {len(todos)} to do", *lines]),
            title=f"{left} to do",
            metadata={"todos": todos},
        )


def _line(todo: JsonObject) -> str:
    priority = f" ({todo['priority']})" if "priority" in todo else ""
    return f"{_MARKS[todo['status']]} {todo['content']}{priority}"
