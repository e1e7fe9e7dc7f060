"""The write tool: a whole file."""

from collections.abc import Sequence

import trio
from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.change import hard_link_note, present, put
from harness_batch.tools.diff import diff
from harness_batch.tools.edit import FILE_PATH
from harness_batch.tools.editing import unwritable
from harness_batch.tools.files import Content
from harness_batch.tools.paths import Refused, admitted, asks_for
from harness_batch.tools.protocol import ToolContext, ToolResult
from harness_batch.tools.text import BOM


@frozen
class WriteTool:
    """Creates a file or replaces all of it."""

    name: str = "write"
    permission: str = "edit"
    description: str = (
        "Writes a whole file; missing folders are made. An existing file must have been read with "
        "the read tool in this session and be unchanged since; its mode, byte order mark and CRLF "
        "line ends are kept. The content is written as given: a final newline only if you give "
        "one. Prefer edit for changes to an existing file."
    )

    @property
    def parameters(self) -> JsonObject:
        """A path and the content."""
        return {
            "type": "object",
            "properties": {
                "file_path": FILE_PATH,
                "content": {"type": "string", "description": "All of the file's text."},
            },
            "required": ["file_path", "content"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`edit` of the file."""
        return asks_for(arguments["file_path"], "edit", context)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Write, or say why not."""
        del call_id
        path, content = arguments["file_path"], arguments["content"]
        return await trio.to_thread.run_sync(_write, path, content, context)


def _write(text: str, content: str, context: ToolContext) -> ToolResult:
    place = admitted(text, "edit", context)
    if isinstance(place, Refused):
        return place.result()
    reason = unwritable(content)
    if reason is not None:
        return Refused(reason).result()
    before = present(place, context, new=True)
    if isinstance(before, Refused):
        return before.result()
    data = _like(before, content)
    old = b"" if before is None else before.data
    if before is not None and data == old:
        said = f"{place.shown} has exactly this content already; nothing was written."
        return ToolResult(output=said, title=place.shown)
    refused = put(place, before, data, context)
    if refused is not None:
        return refused.result()
    done = "Created" if before is None else "Replaced"
    changed = "" if before is None else diff(old, data, place.shown)
    return ToolResult(
        output=f"{done} {place.shown}: {len(data)} bytes, {_line_count(data)} lines."
        f"{hard_link_note(before)}" + (f"\n{changed}" if changed else ""),
        title=place.shown,
        metadata={"path": place.shown},
    )


def _like(before: Content | None, content: str) -> bytes:
    """The content in the old file's manner: byte order mark, and CRLF where all lines had it."""
    if before is None:
        return content.encode()
    feeds = before.data.count(b"\n")
    if feeds and before.data.count(b"\r\n") == feeds:
        content = content.replace("\r\n", "\n").replace("\n", "\r\n")
    if before.data.startswith(BOM.encode()) and not content.startswith(BOM):
        content = BOM + content
    return content.encode()


def _line_count(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
