r"""Lists or searches files the way ripgrep would, for hosts without it. A program of its own.

    python -I -m harness_batch.tools.searcher files START
    python -I -m harness_batch.tools.searcher matches START PATTERN

It runs in the workspace through the session's launcher: patterns and .gitignore files are the
model's and the repository's, Python's regular expressions backtrack, and a process can be killed.
Output is ripgrep's: `path\0` for each file, or `path\0line:text\n` for each match. Ends with 2 and
a message for a pattern that is none.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pathspec import GitIgnoreSpec

MAX_IGNORE_FILE = 1 << 20
"""Bytes of one .gitignore."""
MAX_LINE = 1 << 20
"""Bytes of a line that are matched at once; longer ones go in pieces."""
MAX_TEXT = 2000
"""Bytes of a matching line that are passed on."""
_SNIFFED = 8192

Rules = tuple[tuple[str, GitIgnoreSpec], ...]
"""Ignore rules with the folder they stand in (`""` or ending in a slash), outermost first."""


def walk(folder: str, rules: Rules) -> Iterator[str]:
    """Relative paths of the regular files under `folder` (`""` or ending in a slash)."""
    try:
        with os.scandir(folder or ".") as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    rules = _with_own(rules, folder)
    for entry in entries:
        path = folder + entry.name
        if entry.name.casefold() == ".git" or "\n" in entry.name or entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            if not ignored(path + "/", rules):
                yield from walk(path + "/", rules)
        elif entry.is_file(follow_symlinks=False) and not ignored(path, rules):
            yield path


def ignored(path: str, rules: Rules) -> bool:
    """The innermost rule that says anything about it decides."""
    for folder, spec in reversed(rules):
        said = spec.check_file(path.removeprefix(folder)).include
        if said is not None:
            return said
    return False


def above(start: str) -> Rules:
    """The rules of the folders over `start`; none when they ignore it, as it was named."""
    rules: Rules = ()
    parts = [part for part in start.split("/") if part]
    for depth, part in enumerate(parts):
        folder = "".join(f"{name}/" for name in parts[:depth])
        rules = _with_own(rules, folder)
        if ignored(f"{folder}{part}/", rules):
            return ()
    return rules


def matches(path: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, bytes]]:
    """Matching lines of a text file with their numbers; nothing from a binary one."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or b"\0" in file.peek(_SNIFFED):
            return
        yield from _matching_lines(file, pattern)


def main(arguments: list[str]) -> int:
    """Run; 0 as ripgrep for something found, 1 for nothing, 2 for a bad pattern."""
    mode, start = arguments[0], arguments[1].strip("/")
    start = "" if start == "." else start.removeprefix("./")
    single = bool(start) and not Path(start).is_dir()
    files = iter([start]) if single else walk(f"{start}/" if start else "", above(start))
    out = sys.stdout.buffer
    if mode == "files":
        return 1 - _count(out.write(os.fsencode(path) + b"\0") for path in files)
    try:
        pattern = re.compile(arguments[2])
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 1 - _count(
        out.write(b"%b\0%d:%b\n" % (os.fsencode(path), number, line))
        for path in files
        for number, line in matches(path, pattern)
    )


def _with_own(rules: Rules, folder: str) -> Rules:
    file = Path(folder, ".gitignore")
    try:
        if not stat.S_ISREG(file.lstat().st_mode) or file.stat().st_size > MAX_IGNORE_FILE:
            return rules
        lines = file.read_text(errors="surrogateescape").splitlines()
        return (*rules, (folder, GitIgnoreSpec.from_lines(lines)))
    except (OSError, ValueError):
        return rules


def _matching_lines(file: BinaryIO, pattern: re.Pattern[str]) -> Iterator[tuple[int, bytes]]:
    number, begun = 1, True
    while line := file.readline(MAX_LINE):
        bare = line.rstrip(b"\r\n")
        if pattern.search(bare.decode(errors="surrogateescape")):
            yield number, bare[:MAX_TEXT]
        begun = line.endswith(b"\n")
        number += begun


def _count(things: Iterator[int]) -> int:
    """1 when there was any."""
    some = 0
    for _ in things:
        some = 1
    return some


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
