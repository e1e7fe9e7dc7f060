"""The notes of a repository and of its user, and the files that a recipe attaches.

Notes are read from the commit that the session starts from, before anything has run, so that no
agent and no setup command writes its own instructions. Attached files are those of the workspace.
Hostile content stays data: regular files only, links are not followed, sizes are capped.
"""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from pathspec import PathSpec

from harness_batch.engine.prompt import ProjectFile

NOTES = ("AGENTS.md", "CLAUDE.md")
"""Per folder the first of these that exists."""
MAX_FILE_BYTES = 64 * 1024
MAX_FILES = 50


class Tree(Protocol):
    """The regular files of a commit, by path with `/`."""

    def names(self) -> Sequence[str]:
        """All of them."""
        ...

    def read(self, names: Sequence[str], most: int) -> Mapping[str, bytes | str]:
        """At most `most` bytes, or words on why there are none, of those that are there."""
        ...


def project_notes(tree: Tree, folder: str, extra: Sequence[str] = ()) -> tuple[ProjectFile, ...]:
    """AGENTS.md (else CLAUDE.md) from the top down to `folder`, then what `extra` globs match."""
    steps = [part for part in PurePosixPath(folder).parts if part not in ("/", ".")]
    folders = ["/".join(steps[:depth]) for depth in range(len(steps) + 1)]
    choices = [[f"{place}/{name}".lstrip("/") for name in NOTES] for place in folders]
    found = tree.read([name for choice in choices for name in choice], MAX_FILE_BYTES + 1)
    chosen = [next((name for name in choice if name in found), None) for choice in choices]
    notes = [_shown(name, found[name]) for name in chosen if name is not None]
    if extra:
        spec = PathSpec.from_lines("gitignore", extra)
        named = sorted(name for name in tree.names() if spec.match_file(name))[:MAX_FILES]
        texts = tree.read([name for name in named if name not in chosen], MAX_FILE_BYTES + 1)
        notes += [_shown(name, texts[name]) for name in sorted(texts)]
    return tuple(notes)


def standing_instructions(globs: Sequence[str]) -> tuple[ProjectFile, ...]:
    """The user's own instruction files: absolute globs, links followed."""
    found = dict.fromkeys(
        file for one in globs for file in sorted(Path("/").glob(one.lstrip("/"))) if file.is_file()
    )
    files = list(found)[:MAX_FILES]
    return tuple(_content(file, file.as_posix(), os.O_RDONLY, mine=True) for file in files)


def attached(root: Path, globs: Sequence[str]) -> tuple[ProjectFile, ...]:
    """Files of the workspace that match, in order of path; at most `MAX_FILES`."""
    if not globs:
        return ()
    spec = PathSpec.from_lines("gitignore", globs)
    names = sorted(name for name in _walk(root) if spec.match_file(name))
    return tuple(_read(root / name, root) for name in names[:MAX_FILES])


def _walk(root: Path) -> Iterable[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in files:
            path = Path(folder, name)
            if _plain(path):
                yield path.relative_to(root).as_posix()


def _plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _read(path: Path, root: Path) -> ProjectFile:
    name = path.relative_to(root).as_posix()
    return _content(path, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, mine=False)


def _content(path: Path, name: str, flags: int, *, mine: bool) -> ProjectFile:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        return ProjectFile(name, f"(cannot be read: {error.strerror})", mine)
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ProjectFile(name, "(is not an ordinary file)", mine)
        return ProjectFile(name, _text(file.read(MAX_FILE_BYTES + 1)), mine)


def _shown(name: str, content: bytes | str) -> ProjectFile:
    told = content if isinstance(content, bytes) else f"(cannot be read: {content})".encode()
    return ProjectFile(name, _text(told))


def _text(data: bytes) -> str:
    text = data[:MAX_FILE_BYTES].decode("utf-8", "replace")
    return text if len(data) <= MAX_FILE_BYTES else f"{text}\n(cut off here)"
