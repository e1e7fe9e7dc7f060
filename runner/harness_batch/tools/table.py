"""The tools that are part of the house, in one list."""

from harness_batch.tools.bash import BashTool
from harness_batch.tools.edit import EditTool
from harness_batch.tools.final_output import final_output
from harness_batch.tools.glob import GlobTool
from harness_batch.tools.grep import GrepTool
from harness_batch.tools.multiedit import MultieditTool
from harness_batch.tools.protocol import Tool
from harness_batch.tools.read import ReadTool
from harness_batch.tools.todo import TodoTool
from harness_batch.tools.webfetch import WebfetchTool
from harness_batch.tools.write import WriteTool

__all__ = ["bundled_tools", "final_output"]


def bundled_tools() -> tuple[Tool, ...]:
    """Sorted by name, as the model is shown them."""
    return (
        BashTool(),
        EditTool(),
        GlobTool(),
        GrepTool(),
        MultieditTool(),
        ReadTool(),
        TodoTool(),
        WebfetchTool(),
        WriteTool(),
    )
