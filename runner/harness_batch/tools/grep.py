"""The grep tool: lines that match a regular expression, in the newest files first."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import trio
from attrs import frozen

from harness_batch.messages import JsonObject
from harness_batch.rules import Ask
from harness_batch.tools.glob import seen_from
from harness_batch.tools.globs import BadGlob, Glob
from harness_batch.tools.paths import Refused, admitted, asks_for, printable
from harness_batch.tools.protocol import ToolContext, ToolResult
from harness_batch.tools.search import SECONDS, Area, Hit, Hits, find_lines

MAX_SHOWN = 100
"""Lines of one answer."""
MAX_TEXT = 300
"""Characters of one line."""


@frozen
class GrepTool:
    """Finds lines by a regular expression."""

    name: str = "grep"
    permission: str = "grep"
    description: str = (
        "Searches the contents of files for a regular expression, line by line. include narrows "
        "it to files by a glob such as `*.py` or `src/**/*.ts`. Binary files, files that "
        ".gitignore names, and .git are left out. Answers with line numbers, the newest files "
        f"first, at most {MAX_SHOWN} lines. Escape literal braces, brackets and dots."
    )

    @property
    def parameters(self) -> JsonObject:
        """A pattern, where to look, and in which files."""
        return {
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 2000,
                    "description": "A regular expression; `(?i)` in front ignores case.",
                },
                "path": {
                    "type": "string",
                    "description": "Folder or file to search; the workspace when left out.",
                },
                "include": {"type": "string", "description": "Glob of the files to search."},
            },
            "required": ["pattern"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """`grep` of the folder or file."""
        return asks_for(arguments.get("path") or ".", "grep", context)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Search, or say why not."""
        del call_id
        place = admitted(arguments.get("path") or ".", "grep", context)
        if isinstance(place, Refused):
            return place.result()
        if not place.path.exists():
            return Refused(f"{place.shown}: no such file or folder.").result()
        unfit = _unfit(arguments["pattern"])
        if unfit is not None:
            return Refused(unfit).result()
        try:
            wanted = arguments.get("include")
            include = Glob.parse(seen_from(place, wanted)) if wanted else None
        except BadGlob as error:
            return Refused(f"include {arguments['include']!r}: {error}").result()
        area = Area.of(place)
        found = await find_lines(area, arguments["pattern"], include, context)
        if isinstance(found, Refused):
            return found.result()
        return await _shown(arguments["pattern"], area, found)


def _unfit(pattern: str) -> str | None:
    if "\0" in pattern or "\n" in pattern:
        return "the pattern holds a NUL or a line feed; lines are searched one by one."
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return "the pattern holds a lone surrogate; remove it."
    return None


async def _shown(pattern: str, area: Area, found: Hits) -> ToolResult:
    files: defaultdict[str, list[Hit]] = defaultdict(list)
    for hit in found.hits:
        files[hit.path].append(hit)
    ordered = await trio.to_thread.run_sync(area.newest_first, list(files))
    every = (hit for path in ordered for hit in sorted(files[path], key=lambda hit: hit.line))
    lines: list[str] = []
    last = None
    for hit in islice(every, MAX_SHOWN):
        if hit.path != last:
            lines.append(f"{area.place(hit.path).shown}:")
            last = hit.path
        lines.append(f"  {hit.line}: {_clipped(hit.text)}")
    total = len(found.hits)
    shown = f"; {MAX_SHOWN} are shown, narrow the search" if total > MAX_SHOWN else ""
    head = f"{_counted(total, 'matching line')} in {_counted(len(files), 'file')}{shown}"
    if not found.whole:
        head += f" (stopped after {SECONDS} s or {total} lines: there may be more)"
    return ToolResult(
        output="\n".join([head, *lines]) if total or not found.whole else "No matches found.",
        title=printable(pattern),
        metadata={"matches": total, "files": len(files)},
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _clipped(text: str) -> str:
    bare = text.rstrip("\r")
    return bare if len(bare) <= MAX_TEXT else f"{bare[:MAX_TEXT]}[...]"
