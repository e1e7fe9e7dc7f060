"""JSON as the providers get it, and what was made of a turn once, kept.

Requests of one session differ only at their end, so each turn is encoded once; a request is the
join of the pieces.
"""

import json
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from harness_batch.messages import JsonObject, Turn

T = TypeVar("T")


def encode(value: object) -> bytes:
    """Compact JSON in UTF-8. Lone surrogates become `?`, NaN and infinities their names."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        plain = json.loads(json.dumps(value), parse_constant=str)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def encode_fields(fields: JsonObject) -> bytes:
    """The inside of a JSON object, without its braces."""
    return encode(fields)[1:-1]


class OncePerTurn(Generic[T]):
    """Keeps what `make` made of each turn for as long as the turn is the same object."""

    def __init__(self, make: Callable[[Turn], T]) -> None:
        self._make = make
        self._kept: dict[str, tuple[Turn, T]] = {}

    def of(self, turns: Sequence[Turn]) -> list[T]:
        """What was made of each, in order; of turns that are gone nothing is kept."""
        kept = self._kept
        made: list[T] = []
        for turn in turns:
            known = kept.get(turn.message.id)
            if known is None or known[0] is not turn:
                known = kept[turn.message.id] = (turn, self._make(turn))
            made.append(known[1])
        if len(kept) > len(turns) + 8:
            self._kept = {t.message.id: kept[t.message.id] for t in turns}
        return made
