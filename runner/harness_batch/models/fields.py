"""Fields of a provider's JSON, read with their types checked: hostile until then."""

import json
from decimal import Decimal, InvalidOperation

from harness_batch.errors import ProtocolBroken
from harness_batch.messages import JsonObject


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


def count(source: JsonObject, key: str) -> int:
    """The token count under `key`; what is no whole number >= 0 counts as 0."""
    value = source.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 1e15 else 0


def money(value: object) -> Decimal | None:
    """US dollars as OpenRouter reports them; None when they are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None
