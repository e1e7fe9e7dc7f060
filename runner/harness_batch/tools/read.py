"""The read tool: numbered lines of a text file, the entries of a folder, the kind of the rest."""

from collections.abc import Sequence

import trio
from attrs import frozen

from harness_batch.messages import Image, JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.edit import FILE_PATH
from harness_batch.tools.files import MAX_LISTED, Folder, Missing, Opened, opened
from harness_batch.tools.paths import Place, Refused, admitted, asks_for
from harness_batch.tools.pictures import picture
from harness_batch.tools.protocol import ToolContext, ToolResult
from harness_batch.tools.window import (
    MAX_LINE_CHARACTERS,
    MAX_LINES,
    MAX_SCANNED,
    Binary,
    Window,
    window,
)


@frozen
class ReadTool:
    """Shows a file."""

    name: str = "read"
    permission: str = "read"
    description: str = (
        f"Reads a file as numbered lines: at most {MAX_LINES} lines a call and "
        f"{MAX_LINE_CHARACTERS} characters a line (a longer one is cut in the middle and says so). "
        "offset is the first line (1 is the first of the file), limit the number of lines. Lists "
        "a folder. Shows pictures (PNG, JPEG, GIF, WebP) to models that take them; other binary "
        "files are named, not shown. Must come before edit, multiedit or write of an existing file."
    )

    @property
    def parameters(self) -> JsonObject:
        """A path and a range of lines."""
        return {
            "type": "object",
            "properties": {
                "file_path": FILE_PATH,
                "offset": {"type": "integer", "minimum": 0, "description": "First line, from 1."},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": f"Number of lines, at most {MAX_LINES}.",
                },
            },
            "required": ["file_path"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`read` of the file."""
        return asks_for(arguments["file_path"], "read", context)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Show it, or say what is there instead."""
        del call_id
        offset = max(1, int(arguments.get("offset", 1)))
        limit = min(MAX_LINES, int(arguments.get("limit", MAX_LINES)))
        path = arguments["file_path"]
        return await trio.to_thread.run_sync(_read, path, offset, limit, context)


def _read(text: str, offset: int, limit: int, context: ToolContext) -> ToolResult:
    place = admitted(text, "read", context)
    if isinstance(place, Refused):
        return place.result()
    with opened(place) as found:
        match found:
            case Refused():
                return found.result()
            case Missing():
                return found.refused(place).result()
            case Folder():
                return _listing(place, found)
            case Opened():
                context.files.seen[place.path] = found.fingerprint
                if context.takes_images and (shown := picture(found.descriptor, found.size)):
                    return _pictured(place, found, shown)
                return _shown(place, found, window(found.descriptor, found.size, offset, limit))


def _pictured(place: Place, file: Opened, shown: Image) -> ToolResult:
    kind = shown.media_type.removeprefix("image/").upper()
    told = f"{place.shown} is a picture ({kind}, {file.size} bytes); you see it beside this result."
    return ToolResult(output=told, title=place.shown, images=(shown,))


def _listing(place: Place, folder: Folder) -> ToolResult:
    left = folder.total - len(folder.entries)
    more = (
        f"\n[... {left} more entries; only {MAX_LISTED} are listed; use glob ...]" if left else ""
    )
    listed = "\n".join(folder.entries) or "(empty)"
    return ToolResult(
        output=f"{place.shown} is a folder with {folder.total} entries:\n{listed}{more}",
        title=place.shown,
    )


def _shown(place: Place, file: Opened, seen: Window | Binary) -> ToolResult:
    match seen:
        case Binary(kind=kind):
            return ToolResult(
                output=f"{place.shown} is {kind} of {file.size} bytes; its content is not shown.",
                title=place.shown,
            )
        case Window() if file.size == 0:
            return ToolResult(output=f"{place.shown} is empty (0 bytes).", title=place.shown)
        case Window(lines=()):
            return ToolResult(output=_past_the_end(place, seen), title=place.shown, status="error")
        case Window():
            numbered = "\n".join(
                f"{number:6d}\t{line}" for number, line in enumerate(seen.lines, start=seen.first)
            )
            notes = "".join(f"\n[{note}]" for note in _notes(file, seen))
            return ToolResult(output=numbered + notes, title=place.shown)


def _past_the_end(place: Place, seen: Window) -> str:
    if seen.given_up:
        return (
            f"{place.shown}: line {seen.first} lies beyond the first {MAX_SCANNED} bytes, which is "
            "as far as this tool looks. Use bash (sed -n, tail) for the rest."
        )
    return (
        f"{place.shown} has {seen.total} lines; offset {seen.first} is past its end. "
        f"Give an offset from 1 to {seen.total}."
    )


def _notes(file: Opened, seen: Window) -> list[str]:
    last = seen.first + len(seen.lines) - 1
    notes: list[str] = []
    if seen.total is None:
        notes.append(
            f"lines {seen.first}-{last} of a file of {file.size} bytes; there is more: "
            f"offset={last + 1}"
        )
    elif last < seen.total or seen.first > 1:
        more = f"; for more: offset={last + 1}" if last < seen.total else ""
        notes.append(f"lines {seen.first}-{last} of {seen.total}{more}")
    if seen.odd_bytes:
        notes.append(r"not UTF-8 throughout: odd bytes are shown as \xNN")
    if seen.crlf:
        notes.append("lines end in CRLF; edits keep that")
    if seen.unended:
        notes.append("no newline at the end of the file")
    if file.links > 1:
        notes.append(f"a hard link: the file has {file.links} names")
    return notes
