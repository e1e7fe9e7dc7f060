"""The unified diff that a changed file's result carries: bounded, whatever was changed."""

from collections.abc import Iterator
from difflib import unified_diff

MAX_LINES = 200
"""Lines of a diff that the model is shown."""
MAX_COLUMNS = 300
"""Characters of one line of it."""
MAX_COMPARED = 2000
"""Changed lines, on either side, up to which they are compared one by one."""
_AROUND = 3


def diff(before: bytes, after: bytes, name: str) -> str:
    """Ends without a line end; empty when nothing changed."""
    if before == after:
        return ""
    lines = list(_hunks(_shown(before), _shown(after), name))
    if len(lines) > MAX_LINES:
        left = len(lines) - MAX_LINES
        lines = [*lines[:MAX_LINES], f"[... {left} more lines of the diff left out ...]"]
    return "\n".join(_clipped(line) for line in lines)


def _hunks(old: list[str], new: list[str], name: str) -> Iterator[str]:
    """Common lines at both ends are cut off first: comparing is quadratic at worst."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = max(0, head - _AROUND)
    old_part = old[start : min(len(old), len(old) - tail + _AROUND)]
    new_part = new[start : min(len(new), len(new) - tail + _AROUND)]
    if max(len(old_part), len(new_part)) > MAX_COMPARED:
        yield f"--- a/{name}"
        yield f"+++ b/{name}"
        yield (
            f"[lines {head + 1}-{len(old) - tail} ({len(old) - tail - head} lines) replaced by "
            f"{len(new) - tail - head} lines; too many to show]"
        )
        return
    for line in unified_diff(old_part, new_part, f"a/{name}", f"b/{name}", lineterm=""):
        yield _moved(line, start) if line.startswith("@@") else line


def _moved(hunk: str, by: int) -> str:
    """A hunk's head with its line numbers counted from the file's start."""
    _, old, new, _ = hunk.split(" ")
    return f"@@ {_plus(old, by)} {_plus(new, by)} @@"


def _plus(span: str, by: int) -> str:
    """`-3,4` moved by `by`; an empty range is numbered by the line before it already."""
    start, comma, count = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}{comma}{count}"


def _shown(data: bytes) -> list[str]:
    r"""Lines; odd bytes as \xNN, a carriage return visible, no end of line at the end said."""
    text = data.decode(errors="backslashreplace")
    lines = [line.replace("\r", "\\r") for line in text.split("\n")]
    if lines[-1]:
        lines[-1] += "   [no newline at end of file]"
        return lines
    return lines[:-1]


def _clipped(line: str) -> str:
    if len(line) <= MAX_COLUMNS:
        return line
    return f"{line[:MAX_COLUMNS]}[... {len(line) - MAX_COLUMNS} more characters ...]"
