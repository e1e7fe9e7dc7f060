"""Listing and searching a workspace through the launcher: by ripgrep, else by our own program.

Both answer in the same stream, which is read as it comes: files that the rules keep from being
read are left out without a word (a count would tell what they hold), and the program is stopped
once enough was found. Names with a line feed are passed over: they would blur the stream.
"""

import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import trio
from attrs import define, field, frozen

from harness_batch.errors import SandboxError
from harness_batch.processes import Command, own_program
from harness_batch.tools.globs import Glob
from harness_batch.tools.paths import Place, Refused
from harness_batch.tools.protocol import ToolContext

SECONDS = 30
"""Time that one search may take."""
MAX_FILES = 100_000
"""Files that one listing collects."""
MAX_MATCHES = 10_000
"""Matching lines that one search collects."""
MAX_RECORD = 64 * 1024
"""Bytes of one path or matching line; longer ones are passed over."""
MAX_COMPLAINT = 4000
"""Bytes kept of what the program says on stderr."""
_RIPGREP = (
    "--no-config",
    "--no-messages",
    "--color=never",
    "--crlf",
    "--hidden",
    "--no-ignore-dot",
    "--no-ignore-global",
    "--iglob=!.git",
    "--glob=!*\n*",
    "--null",
)


@frozen
class Hit:
    """One matching line; `path` is relative to the folder that the search ran in."""

    path: str
    line: int
    text: str


@frozen
class Area:
    """What is searched: from `start` on, by a program that runs in `folder`."""

    folder: Path
    start: str
    """Relative to `folder`; `.` for all of it."""
    root: Path

    @classmethod
    def of(cls, place: Place) -> "Area":
        """The workspace is searched from its root, so that all its .gitignore files count."""
        if place.inside:
            return cls(place.root, place.path.relative_to(place.root).as_posix(), place.root)
        if place.path.is_dir():
            return cls(place.path, ".", place.root)
        return cls(place.path.parent, place.path.name, place.root)

    def place(self, path: str) -> Place:
        """A path of the stream as a place."""
        return Place(self.folder / path, self.root)

    def newest_first(self, paths: Iterable[str]) -> list[str]:
        """By time of change; those that are gone come last. Blocks."""
        return [path for _, path in sorted((-self._changed(path), path) for path in paths)]

    def _changed(self, path: str) -> int:
        try:
            return os.lstat(self.folder / path).st_mtime_ns
        except OSError:
            return 0


@frozen(kw_only=True)
class Listing:
    """Files that a pattern means, in no order."""

    paths: tuple[str, ...]
    whole: bool
    """Nothing was left out for want of room or time."""


@frozen(kw_only=True)
class Hits:
    """Matching lines of files that may be read, in no order."""

    hits: tuple[Hit, ...]
    whole: bool
    """Nothing was left out for want of room or time."""


async def list_files(area: Area, pattern: Glob, context: ToolContext) -> Listing | Refused:
    """Files under the area's start that `pattern`, seen from there, means."""
    prefix = "" if area.start == "." else f"{area.start}/"
    paths: list[str] = []

    def take(record: bytes) -> bool:
        path = os.fsdecode(record).removeprefix("./")
        if pattern.matches(path.removeprefix(prefix)):
            paths.append(path)
        return len(paths) < MAX_FILES

    argv = _by_ripgrep(area, "--files") or _by_ourselves("files", area.start)
    ended = await _run(argv, area.folder, _Stream(b"\0", take), context)
    if isinstance(ended, Refused):
        return ended
    return Listing(paths=tuple(paths), whole=ended.whole)


async def find_lines(
    area: Area, pattern: str, include: Glob | None, context: ToolContext
) -> Hits | Refused:
    """Lines that match a regular expression, in text files that the rules let be read."""
    prefix = "" if area.start == "." else f"{area.start}/"
    hits: list[Hit] = []

    @cache
    def wanted(path: str) -> bool:
        if include is not None and not include.matches(path.removeprefix(prefix)):
            return False
        return all(context.may(ask) for ask in area.place(path).asks("read"))

    def take(record: bytes) -> bool:
        name, nul, rest = record.partition(b"\0")
        number, colon, text = rest.partition(b":")
        path = os.fsdecode(name).removeprefix("./")
        if nul and colon and number.isdigit() and wanted(path):
            hits.append(Hit(path, int(number), text.decode(errors="backslashreplace")))
        return len(hits) < MAX_MATCHES

    argv = _by_ripgrep(
        area,
        "--line-number",
        "--with-filename",
        "--no-heading",
        "--max-columns=2000",
        "--max-columns-preview",
        "--regexp",
        pattern,
    ) or _by_ourselves("matches", area.start, pattern)
    ended = await _run(argv, area.folder, _Stream(b"\n", take), context)
    if isinstance(ended, Refused):
        return ended
    if ended.exit_code == 2 and not hits and ended.complaint:
        return Refused(f"{pattern!r} is not a regular expression here: {ended.complaint}")
    return Hits(hits=tuple(hits), whole=ended.whole)


@frozen(kw_only=True)
class _Ended:
    exit_code: int | None
    whole: bool
    complaint: str


@define
class _Stream:
    """Cuts a stream into records, of bounded length, and hands them on."""

    separator: bytes
    take: Callable[[bytes], bool]
    """False when it was the last one wanted."""
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    _rest: bytes = b""
    _skipping: bool = False

    def add(self, chunk: bytes) -> None:
        *records, rest = (self._rest + chunk).split(self.separator)
        for record in records:
            if self._skipping:
                self._skipping = False
            elif not self.take(record):
                self.scope.cancel()
                return
        self._skipping = self._skipping or len(rest) > MAX_RECORD
        self._rest = b"" if self._skipping else rest


async def _run(
    argv: tuple[str, ...], folder: Path, stream: _Stream, context: ToolContext
) -> _Ended | Refused:
    complaint = bytearray()

    def complain(chunk: bytes) -> None:
        complaint.extend(chunk[: MAX_COMPLAINT - len(complaint)])

    command = Command(argv=argv, cwd=folder, timeout=SECONDS)
    ended = _Ended(exit_code=0, whole=False, complaint="")  # stopped, as enough was found
    try:
        with stream.scope:
            end = await context.launcher.run(command, stream.add, complain)
            said = complaint.decode(errors="backslashreplace").strip()
            ended = _Ended(exit_code=end.exit_code, whole=not end.timed_out, complaint=said)
    except SandboxError as error:
        return Refused(f"the search could not be started: {error}")
    return ended


def _by_ripgrep(area: Area, *options: str) -> tuple[str, ...] | None:
    """Without a `.git` of its own the folder would be ruled by ignore files above it."""
    program = _ripgrep()
    if program is None or not (area.folder / ".git").exists():
        return None
    return (program, *_RIPGREP, *options, "--", f"./{area.start}" if area.start != "." else ".")


def _by_ourselves(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-B", "-m", "harness_batch.tools.searcher", *arguments)


@cache
def _ripgrep() -> str | None:
    """On PATH, or beside the interpreter, where the `search` extra puts it."""
    return own_program("rg", str(Path(sys.executable).parent))
