r"""Wildcards of permission rules: `*` any run of characters, `?` one; anchored; linear, no regex.

`*` crosses `/` and newlines. A trailing ` *` is optional (`ls *` matches `ls`). For paths `\`
reads as `/` and a leading `**/` also matches at the root. Nothing here backtracks: whatever
pattern meets whatever text, the cost grows with their length (segments that hold `?` run on
machine-word bit vectors).
"""

PATH_PERMISSIONS = frozenset({"read", "edit", "glob", "grep", "external_directory"})
"""Permissions whose patterns are paths."""


def matches(pattern: str, text: str) -> bool:
    """Does the whole text match the pattern?"""
    if pattern in ("*", text):
        return True
    if _glob(pattern, text):
        return True
    return pattern.endswith(" *") and _glob(pattern[:-2], text)


def path_matches(pattern: str, path: str) -> bool:
    """As `matches`, for paths."""
    pattern, path = pattern.replace("\\", "/"), path.replace("\\", "/")
    if matches(pattern, path):
        return True
    return pattern.startswith("**/") and matches(pattern[3:], path)


def covers(wide: str, narrow: str, permission: str) -> bool:
    """Does `wide` match everything that `narrow` matches? False when that cannot be shown."""
    if wide in ("*", narrow):
        return True
    if permission == "webfetch":
        return False  # patterns of URLs are not texts, see url_rules.py
    if permission in PATH_PERMISSIONS:
        wide, narrow = wide.replace("\\", "/"), narrow.replace("\\", "/")
        if narrow.startswith("**/") and not covers(wide, narrow[3:], ""):
            return False
    if "?" in wide and "*" in narrow:
        return False
    if narrow.endswith(" *") and not matches(wide, narrow[:-2]):
        return False
    return path_matches(wide, narrow) if permission in PATH_PERMISSIONS else matches(wide, narrow)


def _glob(pattern: str, text: str) -> bool:
    head, *rest = pattern.split("*")
    if not rest:
        return len(head) == len(text) and _at(head, text, 0)
    tail = rest.pop()
    if len(head) + len(tail) > len(text):
        return False
    if not (_at(head, text, 0) and _at(tail, text, len(text) - len(tail))):
        return False
    start, end = len(head), len(text) - len(tail)
    for segment in rest:
        found = _find(segment, text, start, end)
        if found < 0:
            return False
        start = found + len(segment)
    return True


def _at(segment: str, text: str, start: int) -> bool:
    if "?" not in segment:
        return text.startswith(segment, start)
    piece = text[start : start + len(segment)]
    return len(piece) == len(segment) and all(
        a in ("?", b) for a, b in zip(segment, piece, strict=True)
    )


def _find(segment: str, text: str, start: int, end: int) -> int:
    """First place of the segment in text[start:end], or -1."""
    if "?" not in segment:
        return text.find(segment, start, end)
    if not segment.strip("?"):
        return start if end - start >= len(segment) else -1
    return _shift_and(segment, text, start, end)


def _shift_and(segment: str, text: str, start: int, end: int) -> int:
    """Bit i of `state` says: segment[:i + 1] ends here (Baeza-Yates and Gonnet, 1992)."""
    anything = sum(1 << i for i, c in enumerate(segment) if c == "?")
    masks: dict[str, int] = {}
    for i, c in enumerate(segment):
        if c != "?":
            masks[c] = masks.get(c, anything) | 1 << i
    goal, state = 1 << (len(segment) - 1), 0
    for place in range(start, end):
        state = (state << 1 | 1) & masks.get(text[place], anything)
        if state & goal:
            return place - len(segment) + 1
    return -1
