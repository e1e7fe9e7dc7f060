"""Shell globs on repository paths: `*` and `?` stay within a folder, `**` crosses folders."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_MAGIC = re.compile(r"[*?\[]")


def literal_folder(pattern: str) -> str:
    """The folders before the first wildcard; nothing outside them can match."""
    fixed = _parts(pattern)[:-1]
    for index, part in enumerate(fixed):
        if _MAGIC.search(part):
            return "/".join(fixed[:index])
    return "/".join(fixed)


def matching(pattern: str, files: Iterable[str]) -> list[str]:
    """The files and folders that match, sorted; with a trailing `/` folders only.

    Raises: ValueError for a pattern such as `[z-a]`.
    """
    try:
        wanted = re.compile(_expression(pattern))
    except re.error as error:
        raise ValueError(f"{pattern!r} is no glob: {error}") from None
    files = tuple(files)
    candidates = set() if pattern.endswith("/") else set(files)
    candidates |= {str(folder) for file in files for folder in PurePosixPath(file).parents[:-1]}
    return sorted(path for path in candidates if wanted.fullmatch(path))


def _parts(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part not in {"", "."}]


def _expression(pattern: str) -> str:
    parts = _parts(pattern)
    expression = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            expression += r"(?:[^/.][^/]*/)*" + (r"[^/.][^/]*" if last else "")
        else:
            expression += _segment(part) + ("" if last else "/")
    return expression


def _segment(part: str) -> str:
    # As in a shell, a wildcard at the start does not match a leading dot.
    expression = r"(?!\.)" if part[0] in "*?[" else ""
    position = 0
    while position < len(part):
        letter = part[position]
        end = part.find("]", position + 2)
        if letter == "*":
            expression += r"[^/]*"
        elif letter == "?":
            expression += r"[^/]"
        elif letter == "[" and end > 0:
            expression += _class(part[position + 1 : end])
            position = end
        else:
            expression += re.escape(letter)
        position += 1
    return re.sub(r"(?:\[\^/\]\*){2,}", "[^/]*", expression)


def _class(inner: str) -> str:
    """What stands between `[` and `]`: letters, and ranges where a hyphen stands between two."""
    negated = inner[0] in "!^"
    letters = inner[1:] if negated else inner
    expression = ""
    position = 0
    while position < len(letters):
        # Each letter escaped: `--`, `[`, `&&` and the like mean more to `re` than to a shell.
        expression += re.escape(letters[position])
        if letters[position + 1 : position + 2] == "-" and position + 2 < len(letters):
            expression += "-" + re.escape(letters[position + 2])
            position += 2
        position += 1
    return f"[^{expression}]" if negated else f"[{expression}]"
