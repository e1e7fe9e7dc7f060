"""Names that are new in every run: ids, work trees, private folders. Told apart, and put in place.

A recorded reply may say them again: the model has read them in an answer. Played again, it must say
today's.
"""

import re
from collections.abc import Iterator

from attrs import define, field

_ID = r"\b(?:run|ses|att|msg|prt|mcl|tcl|job)_[0-9A-HJKMNP-TV-Z]{26}\b"
_TREE = r"(?:/[^\s/'\"]+)*/worktrees/[^\s/'\"]+/[^\s/'\"]+/tree\b"
_HOME = r"(?:/[^\s/'\"]+)*/worktrees/[^\s/'\"]+/[^\s/'\"]+/home\b"
_TMP = r"(?:/[^\s/'\"]+)*/hb-[A-Za-z0-9_]{6,}"
_OUTPUTS = r"(?:/[^\s/'\"]+)*/attempt-\d+/outputs\b"
NAMES = re.compile(
    f"(?P<tree>{_TREE})|(?P<home>{_HOME})|(?P<tmp>{_TMP})|(?P<outputs>{_OUTPUTS})|(?P<id>{_ID})"
)
"""The name of the group says what kind of name it is."""


def named(text: str) -> Iterator[tuple[str, str]]:
    """Kind and name of each in the text, in order; an id's kind is its prefix."""
    for match in NAMES.finditer(text):
        name, kind = match.group(), match.lastgroup or ""
        yield (name[:3] if kind == "id" else kind), name


def portable(text: str) -> str:
    """The text without the folders of this machine above work trees and outputs."""
    return NAMES.sub(_cut, text)


def _cut(match: re.Match[str]) -> str:
    name = match.group()
    mark = {"tree": "/worktrees/", "home": "/worktrees/", "outputs": "/attempt-"}
    begin = mark.get(match.lastgroup or "")
    return name if begin is None else name[name.rindex(begin) :]


@define
class Renames:
    """What the names of a recording are called in the session that plays it."""

    _now: dict[str, str] = field(factory=dict)

    def learn(self, then: str, now: str) -> None:
        """Take the names from two answers to the same call: the n-th of a kind is the n-th."""
        old, new = list(named(then)), list(named(now))
        if [kind for kind, _ in old] == [kind for kind, _ in new]:
            for (_, before), (_, after) in zip(old, new, strict=True):
                self._now.setdefault(before, after)

    def in_text(self, text: str) -> str:
        """A recorded text with today's names."""
        if not self._now:
            return text
        return NAMES.sub(lambda match: self._now.get(match.group(), match.group()), text)
