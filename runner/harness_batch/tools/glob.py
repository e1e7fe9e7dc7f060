"""The glob tool: files by their names, newest first."""

from collections.abc import Sequence

import trio
from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.globs import BadGlob, Glob
from harness_batch.tools.paths import Place, Refused, admitted, asks_for, printable
from harness_batch.tools.protocol import ToolContext, ToolResult
from harness_batch.tools.search import SECONDS, Area, Listing, list_files

MAX_SHOWN = 100
"""Files of one answer."""


@frozen
class GlobTool:
    """Finds files by a pattern."""

    name: str = "glob"
    permission: str = "glob"
    description: str = (
        "Finds files by a pattern such as `src/**/*.py` or `*.{ts,tsx}`; without a slash it "
        "matches names at any depth. Files that .gitignore names, and .git, are left out. "
        f"Answers with paths relative to the workspace, newest first, at most {MAX_SHOWN}."
    )

    @property
    def parameters(self) -> JsonObject:
        """A pattern and a folder."""
        return {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1},
                "path": {
                    "type": "string",
                    "description": "Folder to search; the workspace when left out.",
                },
            },
            "required": ["pattern"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`glob` of the folder."""
        return asks_for(arguments.get("path") or ".", "glob", context)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Search, or say why not."""
        del call_id
        place = admitted(arguments.get("path") or ".", "glob", context)
        if isinstance(place, Refused):
            return place.result()
        if not place.path.is_dir():
            return Refused(f"{place.shown} is not a folder; path must be one.").result()
        try:
            pattern = Glob.parse(seen_from(place, arguments["pattern"]))
        except BadGlob as error:
            return Refused(f"{arguments['pattern']!r}: {error}").result()
        area = Area.of(place)
        listing = await list_files(area, pattern, context)
        if isinstance(listing, Refused):
            return listing.result()
        ordered = await trio.to_thread.run_sync(area.newest_first, listing.paths)
        return _shown(arguments["pattern"], area, ordered, listing)


def seen_from(place: Place, pattern: str) -> str:
    """An absolute pattern that begins with the folder, relative to it."""
    return pattern.removeprefix(f"{place.path}/")


def _shown(pattern: str, area: Area, ordered: Sequence[str], listing: Listing) -> ToolResult:
    lines = [area.place(path).shown for path in ordered[:MAX_SHOWN]]
    notes: list[str] = []
    if len(ordered) > MAX_SHOWN:
        notes.append(
            f"[{MAX_SHOWN} of {len(ordered)} files are shown, the newest; narrow the pattern]"
        )
    if not listing.whole:
        notes.append(f"[the search was stopped after {SECONDS} s or {len(ordered)} files]")
    return ToolResult(
        output="\n".join([*(lines or ["No files found."]), *notes]),
        title=printable(pattern),
        metadata={"files": len(ordered)},
    )
