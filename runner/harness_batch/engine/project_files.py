"""Reads the workspace's own notes and the files that a recipe attaches; hostile content stays data.

Only regular files inside the workspace are read, links are not followed, sizes are capped.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from pathspec import PathSpec

from harness_batch.engine.prompt import ProjectFile

NOTES = ("AGENTS.md", "CLAUDE.md")
"""Per folder the first of these that exists."""
MAX_FILE_BYTES = 64 * 1024
MAX_FILES = 50


def project_notes(root: Path, cwd: Path, extra: Sequence[str] = ()) -> tuple[ProjectFile, ...]:
    """AGENTS.md (else CLAUDE.md) from the workspace's root down to `cwd`, then `extra` globs."""
    folders = [root, *(root / part for part in _steps(cwd.relative_to(root)))]
    found = (
        next((f for f in map(folder.joinpath, NOTES) if _plain(f)), None) for folder in folders
    )
    notes = [file for file in found if file is not None]
    return tuple(_read(file, root) for file in notes) + attached(root, extra)


def attached(root: Path, globs: Sequence[str]) -> tuple[ProjectFile, ...]:
    """Files of the workspace that match, in order of path; at most `MAX_FILES`."""
    if not globs:
        return ()
    spec = PathSpec.from_lines("gitignore", globs)
    names = sorted(name for name in _walk(root) if spec.match_file(name))
    return tuple(_read(root / name, root) for name in names[:MAX_FILES])


def _steps(relative: Path) -> Iterable[Path]:
    here = Path()
    for part in relative.parts:
        here /= part
        yield here


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
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return ProjectFile(name, f"(cannot be read: {error.strerror})")
    with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        data = file.read(MAX_FILE_BYTES + 1)
    text = data[:MAX_FILE_BYTES].decode("utf-8", "replace")
    return ProjectFile(name, text if len(data) <= MAX_FILE_BYTES else f"{text}\n(cut off here)")
