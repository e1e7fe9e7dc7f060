"""Whether the text of a JSON object has come to its end, told piece by piece. Pure.

Each piece is looked at once: trying to parse all of it whenever a little more arrives takes
minutes over arguments of a megabyte.
"""

import re

from attrs import define, field

_MARK = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)
_WORD = re.compile(r"\S")


@define
class ObjectText:
    """The text of one value, an object to begin with, in pieces."""

    pieces: list[str] = field(factory=list)
    _looked_at: int = 0
    _depth: int = 0
    _in_string: bool = False
    _escaped: bool = False
    _closed: bool = False
    _broken: bool = False
    """It does not begin as an object, or goes on after its end."""

    def __str__(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        """One object with as many closing brackets as opening ones, and nothing after it."""
        for piece in self.pieces[self._looked_at :]:
            self._look_at(piece)
        self._looked_at = len(self.pieces)
        return self._closed and not self._broken

    def _look_at(self, piece: str) -> None:
        at = 1 if self._escaped and piece else 0
        self._escaped = self._escaped and not piece
        if self._closed or not (self._depth or self._in_string):
            first = _WORD.search(piece)
            self._broken |= first is not None and (self._closed or first[0] != "{")
        for found in _MARK.finditer(piece, at):
            self._mark(found[0], rest=piece, end=found.end())

    def _mark(self, mark: str, *, rest: str, end: int) -> None:
        if mark[0] == "\\":
            self._escaped = self._in_string and mark == "\\"
        elif mark == '"':
            self._in_string = not self._in_string
        elif not self._in_string:
            self._depth += 1 if mark in "{[" else -1
            if self._depth == 0:
                self._broken |= self._closed or _WORD.search(rest, end) is not None
                self._closed = True
