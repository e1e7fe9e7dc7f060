"""The items of one reply of the Responses API, out of the events that build them up.

The rule book: `output_index` and `item_id` tell items apart, `added` opens one, deltas fill it,
`done` closes it and holds it whole. What servers do: no index, the same index for every item, a new
id in each event, no deltas at all, no `done`.
"""

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from harness_batch.errors import ProtocolBroken
from harness_batch.messages import JsonObject
from harness_batch.models.encoded import encode
from harness_batch.models.fields import text
from harness_batch.models.protocol import (
    LlmEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)

KINDS = frozenset({"message", "function_call", "reasoning"})
"""Kinds of items that mean something to us."""
MAX_ITEMS = 1024
"""A reply with more items is not one."""


@define
class _Item:
    """An item under way. `id` is that of our events, for calls the one they are answered by."""

    kind: str
    id: str
    name: str = ""
    pieces: list[str] = field(factory=list)
    whole: str = ""
    """What `done` events said of it."""
    begun: bool = False
    open: bool = True


@define
class ItemCollector:
    """The items of one reply in the order in which they began."""

    refused: bool = False
    """The model declined in words of its own."""
    called: bool = False
    """At least one call is complete."""
    _items: list[_Item] = field(factory=list)
    _by_id: dict[str, _Item] = field(factory=dict)
    _by_index: dict[int, _Item] = field(factory=dict)

    @property
    def any(self) -> bool:
        """At least one item began."""
        return bool(self._items)

    def added(self, data: JsonObject, item: JsonObject) -> list[LlmEvent] | None:
        """An item begins; None when it is of a kind that is passed over."""
        opened = self._open(data, item)
        if opened.kind not in KINDS:
            return None
        # The others begin with their first words: many never have any.
        return self._begin(opened) if opened.kind == "function_call" and opened.name else []

    def more(self, data: JsonObject, kind: str, piece: str) -> list[LlmEvent] | None:
        """A delta; None when it is of an item that is passed over.

        Raises: ProtocolBroken when it belongs to no item.
        """
        item = self._find(data, text(data, "item_id"))
        if item is None:
            raise ProtocolBroken("the server sent more of an item that is not open")
        if item.kind != kind or not item.open:
            return None
        return self._more(item, piece) if piece else []

    def next_paragraph(self, data: JsonObject) -> list[LlmEvent] | None:
        """A summary of several parts is one text to us."""
        item = self._find(data, text(data, "item_id"))
        return [] if item is None or not item.pieces else self.more(data, "reasoning", "\n\n")

    def arguments(self, data: JsonObject) -> None:
        """The arguments of a call, whole."""
        item = self._find(data, text(data, "item_id"))
        if item is not None:
            item.whole = text(data, "arguments")

    def done(self, data: JsonObject, item: JsonObject) -> list[LlmEvent] | None:
        """An item is complete; None when it is of a kind that is passed over."""
        found = self._find(data, text(item, "id"))
        if found is None or found.kind != text(item, "type") or not found.open:
            found = self._open(data, item)
        match found.kind:
            case "message":
                self.refused = self.refused or bool(_refusal(item))
                return self._close(found, _said(item))
            case "reasoning":
                return self._close(found, _thought(item), _signature(item))
            case "function_call":
                found.name = text(item, "name") or found.name
                found.whole = _arguments(item) or found.whole
                if item.get("status") == "incomplete":
                    return []  # cut off under way: nothing to run
                return self._call(found)
            case _:
                return None

    def finish(self, output: object, *, whole: bool) -> list[LlmEvent]:
        """What is still open ends with the reply; of one that was cut off no call is run.

        `output`: the items as the last event holds them, for servers that send nothing before.
        """
        events: list[LlmEvent] = []
        if not self._items and isinstance(output, list):
            for item in output:
                events += (self.done({}, item) or []) if isinstance(item, dict) else []
        for item in self._items:
            if not item.open:
                continue
            if item.kind != "function_call":
                events += self._close(item, "")
            elif whole:
                events += self._call(item)
        return events

    def _open(self, data: JsonObject, item: JsonObject) -> _Item:
        number, kind = len(self._items), text(item, "type")
        if number >= MAX_ITEMS:
            raise ProtocolBroken(f"the server sent more than {MAX_ITEMS} items")
        own_id = text(item, "id")
        call_id = (text(item, "call_id") or own_id) if kind == "function_call" else ""
        if kind == "function_call" and not call_id:
            raise ProtocolBroken("the server sent a tool call without an id")
        opened = _Item(kind, call_id or f"item_{number}", text(item, "name"))
        self._items.append(opened)
        if own_id:
            self._by_id[own_id] = opened
        if (index := _index(data)) is not None:
            self._by_index[index] = opened
        return opened

    def _find(self, data: JsonObject, item_id: str) -> _Item | None:
        if item_id in self._by_id:
            return self._by_id[item_id]
        index = _index(data)
        if index is not None:
            return self._by_index.get(index)
        return self._items[-1] if self._items and not item_id else None

    def _begin(self, item: _Item) -> list[LlmEvent]:
        if item.begun:
            return []
        item.begun = True
        match item.kind:
            case "message":
                return [TextStart(item.id)]
            case "reasoning":
                return [ReasoningStart(item.id)]
            case _:
                return [ToolInputStart(item.id, item.name)]

    def _more(self, item: _Item, piece: str) -> list[LlmEvent]:
        item.pieces.append(piece)
        match item.kind:
            case "message":
                return [*self._begin(item), TextDelta(item.id, piece)]
            case "reasoning":
                return [*self._begin(item), ReasoningDelta(item.id, piece)]
            case _:
                return [ToolInputDelta(item.id, piece)] if item.begun else []

    def _close(self, item: _Item, whole: str, signature: str | None = None) -> list[LlmEvent]:
        events = [] if item.pieces or not whole else self._more(item, whole)
        item.open = False
        if signature:
            events += self._begin(item)
        if not item.begun:
            return events
        if item.kind == "message":
            return [*events, TextEnd(item.id)]
        return [*events, ReasoningEnd(item.id, signature)]

    def _call(self, item: _Item) -> list[LlmEvent]:
        if not item.name:
            raise ProtocolBroken("the server sent a tool call without a name")
        item.open, self.called = False, True
        events: list[LlmEvent] = []
        if not item.begun:
            events = self._begin(item)
            events += [ToolInputDelta(item.id, piece) for piece in item.pieces]
        arguments = "".join(item.pieces) or item.whole or "{}"
        return [*events, ToolCall(item.id, item.name, arguments)]


def _index(data: JsonObject) -> int | None:
    index = data.get("output_index")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _texts(parts: object, key: str = "text") -> list[str]:
    found = [p.get(key) for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []
    return [t for t in found if isinstance(t, str) and t]


def _said(item: JsonObject) -> str:
    return "".join((*_texts(item.get("content")), *_refusal(item)))


def _refusal(item: JsonObject) -> Sequence[str]:
    return _texts(item.get("content"), "refusal")


def _thought(item: JsonObject) -> str:
    return "\n\n".join(_texts(item.get("summary")) or _texts(item.get("content")))


def _signature(item: JsonObject) -> str | None:
    """What of a reasoning item goes back beside its text; nothing without its encrypted content.

    A server that keeps nothing (`store: false`) knows a bare id as little as we do.
    """
    sealed = text(item, "encrypted_content")
    kept: dict[str, Any] = {"id": text(item, "id"), "encrypted_content": sealed}
    return encode(kept).decode() if sealed else None


def _arguments(item: JsonObject) -> str:
    arguments = item.get("arguments")
    return encode(arguments).decode() if isinstance(arguments, dict) else text(item, "arguments")
