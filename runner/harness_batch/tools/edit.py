"""The edit tool: one text of a file for another."""

from collections.abc import Sequence

import trio
from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.change import change_file
from harness_batch.tools.editing import Edit
from harness_batch.tools.paths import asks_for
from harness_batch.tools.protocol import ToolContext, ToolResult

FILE_PATH: JsonObject = {
    "type": "string",
    "description": "Relative to the workspace, or absolute inside it.",
}
EDIT_FIELDS: JsonObject = {
    "old_string": {
        "type": "string",
        "description": "The text to replace, exactly as it stands in the file, with enough "
        "lines around it to be unique. Empty only to create a new file.",
    },
    "new_string": {"type": "string", "description": "The text to put there."},
    "replace_all": {
        "type": "boolean",
        "description": "Replace every occurrence instead of the only one. Default false.",
    },
}


@frozen
class EditTool:
    """Replaces one text in one file."""

    name: str = "edit"
    permission: str = "edit"
    description: str = (
        "Replaces old_string by new_string in a file. An existing file must have been read with "
        "the read tool in this session and be unchanged since. old_string must be unique unless "
        "replace_all is true; copy it from what read shows, without the line numbers. Line ends, "
        "byte order mark, mode and all other bytes of the file are kept. Answers with a diff."
    )

    @property
    def parameters(self) -> JsonObject:
        """A path and the two texts."""
        return {
            "type": "object",
            "properties": {"file_path": FILE_PATH, **EDIT_FIELDS},
            "required": ["file_path", "old_string", "new_string"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`edit` of the file."""
        return asks_for(arguments["file_path"], "edit", context)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Edit, or say why not."""
        del call_id
        edits = (Edit.parse(arguments),)
        return await trio.to_thread.run_sync(change_file, arguments["file_path"], edits, context)
