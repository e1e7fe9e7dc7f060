"""Fields of a provider's JSON, read with their types checked: hostile until then."""

import json
from decimal import Decimal, InvalidOperation

from harness_batch.errors import ProtocolBroken
from harness_batch.messages import JsonObject

MOST_TOKENS = 10**10
"""No call takes so many: who reports them has not counted."""
MOST_USD = Decimal(10**9)
LEAST_USD = Decimal("1e-30")
"""Of one call. What is more is no price, what is less is nothing."""
MONEY_CHARACTERS = 64
NAME_CHARACTERS = 512
"""How much of a name that a provider gives is kept."""


def document(data: str) -> JsonObject:
    """The JSON object that `data` is.

    Raises: ProtocolBroken when it is none.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise ProtocolBroken("the server sent an event that is not JSON") from None
    if not isinstance(value, dict):
        raise ProtocolBroken("the server sent an event that is not a JSON object")
    return value


def mapping(source: JsonObject, key: str) -> JsonObject:
    """The object under `key`; a missing one or null is empty.

    Raises: ProtocolBroken when it is something else.
    """
    value = source.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ProtocolBroken(f"the server sent an event whose {key} is not an object")
    return value


def text(source: JsonObject, key: str) -> str:
    """The text under `key`; a missing one or null is empty.

    Raises: ProtocolBroken when it is something else.
    """
    value = source.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProtocolBroken(f"the server sent an event whose {key} is not a text")
    return value


def name(source: JsonObject, key: str) -> str | None:
    """The text under `key` as a name for the records; None when there is none.

    Raises: ProtocolBroken when it is something else.
    """
    return text(source, key)[:NAME_CHARACTERS] or None


def count(source: JsonObject, key: str) -> int | None:
    """The token count under `key`; None when it is none, since the unknown is no 0."""
    value = source.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < MOST_TOKENS else None


def share(source: JsonObject, key: str) -> int:
    """A count that is part of a known one; where it is none, that part is 0."""
    return count(source, key) or 0


def money(value: object) -> Decimal | None:
    """US dollars as OpenRouter reports them; None when they are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    written = str(value)
    if len(written) > MONEY_CHARACTERS:
        return None
    try:
        found = Decimal(written)
    except InvalidOperation:
        return None
    if not (found.is_finite() and 0 <= found < MOST_USD):
        return None
    # An exponent of millions is a number too, until it is written out.
    return Decimal(0) if found < LEAST_USD else found
