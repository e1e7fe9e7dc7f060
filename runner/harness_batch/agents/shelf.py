"""Where the Markdown of agents, skills and commands comes from, and how much of it is taken.

A shelf is the user's own folder or the folder of a repository at a commit. This room knows nothing
of git: whoever has a repository gives a shelf of it.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from attrs import frozen

from harness_batch.errors import Fault, FaultyInput

MAX_BYTES = 256 * 1024
"""Of one file."""
MAX_FILES = 100
"""Of one kind on one shelf, and of one skill's folder that are named."""
MAX_DEPTH = 4
"""Folders below `agents/`, `skills/` and `commands/` that are looked into."""

TRUST = "a repository's files may only restrict (--trust-repo takes them as your own)"
"""Why something of an untrusted shelf is left out."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)

Warn = Callable[[Fault], None]
T = TypeVar("T")


class Shelf(Protocol):
    """Files below `agents/`, `skills/` and `commands/`, by relative paths with `/`."""

    @property
    def trusted(self) -> bool:
        """The user's own, or vouched for by --trust-repo."""
        ...

    def names(self, kind: str) -> Sequence[str]:
        """Regular files below the folder `kind`, sorted."""
        ...

    def read(self, name: str, most: int) -> bytes:
        """At most `most` bytes of a file. Raises: OSError."""
        ...

    def place(self, name: str) -> Path:
        """The file, for people."""
        ...

    def shown(self, name: str) -> str:
        """The file, as the model can name it to its tools."""
        ...


@frozen
class MarkdownFile:
    """One agent, skill or command, not read yet for what it says."""

    name: str
    path: str
    """On its shelf."""
    file: Path
    text: str


@frozen
class DiskShelf:
    """A folder of the user's own; links in it are followed, anything but files is passed over."""

    folder: Path
    trusted: bool = True

    def names(self, kind: str) -> Sequence[str]:
        """Raises nothing: a folder that cannot be listed is empty."""
        return sorted(
            path.relative_to(self.folder).as_posix() for path in _files(self.folder / kind)
        )

    def read(self, name: str, most: int) -> bytes:
        """Raises: OSError."""
        with (self.folder / name).open("rb") as file:
            return file.read(most)

    def place(self, name: str) -> Path:
        """Absolute."""
        return self.folder / name

    def shown(self, name: str) -> str:
        """Absolute: it lies outside the workspace."""
        return str(self.folder / name)


def markdown_files(shelf: Shelf, kind: str, faults: list[Fault]) -> Iterator[MarkdownFile]:
    """`kind/*.md`, of skills `skills/*/SKILL.md`; what cannot be taken is a fault."""
    found = [name for name in shelf.names(kind) if _is_head(name, kind)]
    if len(found) > MAX_FILES:
        told = f"holds {len(found)} {kind}, at most {MAX_FILES} are possible"
        faults.append(Fault(shelf.place(kind), 0, 0, told))
    for path in found[:MAX_FILES]:
        file = shelf.place(path)
        name = _name(path, kind)
        if not _NAME.fullmatch(name):
            told = f"{name!r} is no name: letters, digits, `-`, `_` and `.`, at most 64"
            faults.append(Fault(file, 0, 0, told))
            continue
        try:
            yield MarkdownFile(name, path, file, _text(shelf, path))
        except FaultyInput as error:
            faults += error.faults


def by_name(
    shelves: Iterable[Shelf],
    kind: Literal["skills", "commands"],
    read: Callable[[MarkdownFile, Shelf], T],
    faults: list[Fault],
    warn: Warn,
) -> dict[str, T]:
    """What `read` makes of each file, sorted; later shelves win where they are trusted.

    `read` raises FaultyInput; its faults are added to `faults`.
    """
    known: dict[str, T] = {}
    for shelf in shelves:
        for found in markdown_files(shelf, kind, faults):
            if found.name in known and not shelf.trusted:
                told = f"the {kind.removesuffix('s')} is yours already: {TRUST}"
                warn(Fault(found.file, 0, 0, told, "warning"))
                continue
            try:
                known[found.name] = read(found, shelf)
            except FaultyInput as error:
                faults += error.faults
    return dict(sorted(known.items()))


def _is_head(path: str, kind: str) -> bool:
    parts = path.split("/")
    if kind == "skills":
        return len(parts) == 3 and parts[2] == "SKILL.md"
    return len(parts) == 2 and path.endswith(".md")


def _name(path: str, kind: str) -> str:
    parts = path.split("/")
    return parts[1] if kind == "skills" else parts[1].removesuffix(".md")


def _text(shelf: Shelf, path: str) -> str:
    file = shelf.place(path)
    try:
        data = shelf.read(path, MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        told = f"cannot be read: {error.strerror or error}"
        raise FaultyInput([Fault(file, 0, 0, told)]) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FaultyInput([Fault(file, line, 1, "is not UTF-8 text")]) from None
    if len(data) > MAX_BYTES:
        raise FaultyInput([Fault(file, 0, 0, f"is larger than {MAX_BYTES:,} bytes")])
    if "\0" in text:
        raise FaultyInput([Fault(file, 0, 0, "holds NUL bytes: it is no text")])
    return text


def _files(top: Path) -> Iterator[Path]:
    """Links to folders are followed, but no deeper than `MAX_DEPTH`: they may lead in circles."""
    for folder, folders, names in os.walk(top, followlinks=True):
        if len(Path(folder).relative_to(top).parts) >= MAX_DEPTH:
            folders.clear()
        yield from (path for path in map(Path(folder).joinpath, names) if stat.S_ISREG(_mode(path)))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0
