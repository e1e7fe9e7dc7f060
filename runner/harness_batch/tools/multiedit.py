"""The multiedit tool: several edits of one file, all or none."""

from collections.abc import Sequence

import trio
from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.change import change_file
from harness_batch.tools.edit import EDIT_FIELDS, FILE_PATH
from harness_batch.tools.editing import Edit
from harness_batch.tools.paths import asks_for
from harness_batch.tools.protocol import ToolContext, ToolResult


@frozen
class MultieditTool:
    """Replaces several texts in one file."""

    name: str = "multiedit"
    permission: str = "edit"
    description: str = (
        "Several edits of one file in one call, applied in order, each to the outcome of the one "
        "before. If one cannot be applied, none is and the file stays as it was. The rules of the "
        "edit tool hold for each."
    )

    @property
    def parameters(self) -> JsonObject:
        """A path and a list of edits."""
        edit = {
            "type": "object",
            "properties": EDIT_FIELDS,
            "required": ["old_string", "new_string"],
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "properties": {
                "file_path": FILE_PATH,
                "edits": {"type": "array", "items": edit, "minItems": 1, "maxItems": 200},
            },
            "required": ["file_path", "edits"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`edit` of the file."""
        return asks_for(arguments["file_path"], "edit", context)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Apply all, or say which one does not fit."""
        del call_id
        edits = tuple(Edit.parse(edit) for edit in arguments["edits"])
        return await trio.to_thread.run_sync(change_file, arguments["file_path"], edits, context)
