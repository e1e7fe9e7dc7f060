r"""Path globs that a hostile pattern cannot make slow: `*`, `?`, `[...]`, `**`, `{a,b}`.

`*` and `?` stay within one name, `**` as a whole name spans folders. A pattern without a slash
matches names at any depth. fnmatch's translation of one name does not backtrack (it takes atomic
groups), and names are matched against names in a table, so the cost is bounded by their product.
"""

import re
from collections.abc import Sequence
from fnmatch import translate

from attrs import frozen

MAX_ALTERNATIVES = 64
"""What braces may unfold to."""
MAX_PATTERN = 1000
"""Characters of a pattern."""


class BadGlob(ValueError):
    """A pattern that cannot be used; the message says why."""


@frozen
class Glob:
    """A parsed pattern; each alternative is a row of names, None standing for `**`."""

    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]

    @classmethod
    def parse(cls, text: str) -> "Glob":
        """Raises: BadGlob."""
        if len(text) > MAX_PATTERN:
            raise BadGlob(f"the pattern has {len(text)} characters; at most {MAX_PATTERN} go.")
        return cls(tuple(_names(one) for one in _unfolded(text)))

    def matches(self, path: str) -> bool:
        """Whether a relative path with `/` between its names is meant."""
        names = path.split("/")
        return any(_matches(pattern, names) for pattern in self.alternatives)


def _names(text: str) -> tuple[re.Pattern[str] | None, ...]:
    names = [name for name in text.split("/") if name not in {"", "."}]
    if ".." in names:
        raise BadGlob("`..` cannot stand in a pattern; give the folder as path instead.")
    if not names:
        raise BadGlob("the pattern is empty; `**/*` means every file.")
    if "/" not in text.strip("/").removeprefix("./"):
        names.insert(0, "**")
    if names[-1] == "**":
        names.append("*")
    squeezed = [n for i, n in enumerate(names) if n != "**" or i == 0 or names[i - 1] != "**"]
    return tuple(None if name == "**" else _name(name) for name in squeezed)


def _name(text: str) -> re.Pattern[str]:
    try:
        return re.compile(translate(text))
    except re.error as error:
        raise BadGlob(f"{text!r} is not a pattern for a name: {error}.") from error


def _matches(pattern: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Row by row: which beginnings of `names` the beginning of the pattern matches."""
    reached = [True] + [False] * len(names)
    for part in pattern:
        if part is None:
            first = reached.index(True) if True in reached else len(reached)
            reached = [i >= first for i in range(len(reached))]
        else:
            reached = [False] + [
                was and part.match(name) is not None
                for was, name in zip(reached, names, strict=False)
            ]
    return reached[-1]


def _unfolded(text: str) -> list[str]:
    """Braces as alternatives; unbalanced ones stand for themselves."""
    done: list[str] = []
    left = [text]
    while left:
        one = left.pop()
        span = _braces(one)
        if span is None:
            done.append(one)
        else:
            start, end = span
            left += [one[:start] + part + one[end + 1 :] for part in _parts(one[start + 1 : end])]
        if len(done) + len(left) > MAX_ALTERNATIVES:
            raise BadGlob(f"the braces unfold to more than {MAX_ALTERNATIVES} patterns.")
    return done


def _braces(text: str) -> tuple[int, int] | None:
    """The first pair of braces that holds a comma."""
    start = text.find("{")
    while start >= 0:
        depth = 0
        for at in range(start, len(text)):
            depth += (text[at] == "{") - (text[at] == "}")
            if depth == 0:
                if "," in text[start:at]:
                    return start, at
                break
        start = text.find("{", start + 1)
    return None


def _parts(inner: str) -> list[str]:
    """Split at the commas that are in no inner braces."""
    parts, depth, begun = [], 0, 0
    for at, letter in enumerate(inner):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append(inner[begun:at])
            begun = at + 1
    return [*parts, inner[begun:]]
