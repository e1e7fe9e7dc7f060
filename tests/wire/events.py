"""What the renderings of all wire formats share: events, and texts cut into deltas."""

import json
from collections.abc import Iterator

from attrs import frozen

from wire.script import Call, Delivery

PIECE = 7
"""Characters a delta."""


@frozen
class Event:
    """One server-sent event."""

    data: str
    name: str | None = None


def call_id(call: Call, number: int, position: int, prefix: str) -> str:
    """The id of a call: the script's, else one that is unique in the conversation."""
    return call.call_id or f"{prefix}_{number}_{position}"


def arguments_of(call: Call) -> str:
    """The arguments as the model wrote them."""
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False)


def pieces_of(text: str) -> Iterator[str]:
    """The text in deltas."""
    return (text[i : i + PIECE] for i in range(0, len(text), PIECE))


def argument_pieces(call: Call, delivery: Delivery) -> list[str]:
    """The arguments in deltas."""
    text = arguments_of(call)
    return [text] if delivery.arguments == "whole" else list(pieces_of(text))
