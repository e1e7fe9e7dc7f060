"""Tool calls put together from the deltas of chat completions, however a server cuts them.

The rule book: `index` tells calls apart, `id` and name come once, arguments in pieces. What
servers do: no index, the same index for every call, the id once, in each delta or never, a new id
in each delta, the name repeated or in pieces, whole calls in one delta, arguments as an object.
"""

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from harness_batch.errors import ProtocolBroken
from harness_batch.ids import new_id
from harness_batch.messages import JsonObject
from harness_batch.models.braces import ObjectText
from harness_batch.models.encoded import encode
from harness_batch.models.fields import mapping, text
from harness_batch.models.protocol import LlmEvent, ToolCall, ToolInputDelta, ToolInputStart

MAX_CALLS = 256
"""A reply with more tool calls is not one."""


@define
class _Call:
    index: int | None
    call_id: str = ""
    """Ours to the outside once it is announced."""
    name: str = ""
    arguments: ObjectText = field(factory=ObjectText)
    extra: JsonObject = field(factory=dict)
    """`extra_content`: Gemini wants its signatures back."""
    announced: bool = False


@define
class CallCollector:
    """The calls of one reply in the order in which they began."""

    _calls: list[_Call] = field(factory=list)
    _by_id: dict[str, _Call] = field(factory=dict)
    _by_index: dict[int, _Call] = field(factory=dict)

    @property
    def any(self) -> bool:
        """At least one call began."""
        return bool(self._calls)

    def take(self, deltas: Sequence[Any]) -> list[LlmEvent]:
        """What the deltas of one chunk add.

        Raises: ProtocolBroken when they belong to no call.
        """
        events: list[LlmEvent] = []
        for delta in deltas:
            if not isinstance(delta, dict):
                raise ProtocolBroken("the server sent a tool call that is not an object")
            events.extend(self._take(delta))
        return events

    def finish(self) -> list[LlmEvent]:
        """The complete calls.

        Raises: ProtocolBroken when one never got a name.
        """
        events: list[LlmEvent] = []
        for call in self._calls:
            if not call.name:
                raise ProtocolBroken("the server sent a tool call without a name")
            events.extend(self._announce(call))
            arguments = str(call.arguments) or "{}"
            sealed = encode(call.extra).decode() if call.extra else None
            events.append(ToolCall(call.call_id, call.name, arguments, sealed))
        return events

    def _take(self, delta: JsonObject) -> list[LlmEvent]:
        function = mapping(delta, "function")
        name, piece = text(function, "name"), _arguments(function)
        call = self._call_of(delta, name, piece)
        call.extra.update(mapping(delta, "extra_content"))
        if name and name != call.name and not call.announced:
            call.name += name
        events = self._announce(call) if call.name and (piece or call.call_id) else []
        if piece:
            call.arguments.pieces.append(piece)
            if call.announced:
                events.append(ToolInputDelta(call.call_id, piece))
        return events

    def _call_of(self, delta: JsonObject, name: str, piece: str) -> _Call:
        call_id, index = _id_of(delta), delta.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        if call_id and call_id in self._by_id:
            return self._by_id[call_id]
        known = self._by_index.get(index) if index is not None else None
        if known is None and index is None and not name:
            known = self._calls[-1] if self._calls else None
            if known is None:
                raise ProtocolBroken("the server sent arguments of no tool call")
        elif known is None and index is None and not call_id and self._calls:
            last = self._calls[-1]
            # The name again is no new call while the arguments are still under way.
            known = last if last.name == name and not last.arguments.is_whole else None
        elif known is not None and self._is_another(known, call_id, name, piece):
            known = None
        return self._note(known or self._new(index), call_id, index)

    @staticmethod
    def _is_another(known: _Call, call_id: str, name: str, piece: str) -> bool:
        """A call that a server gave the index of an earlier one."""
        if not name:
            return False
        if call_id and known.call_id:
            return True
        return bool(piece) and known.arguments.is_whole

    def _new(self, index: int | None) -> _Call:
        if len(self._calls) >= MAX_CALLS:
            raise ProtocolBroken(f"the server sent more than {MAX_CALLS} tool calls")
        call = _Call(index)
        self._calls.append(call)
        return call

    def _note(self, call: _Call, call_id: str, index: int | None) -> _Call:
        if call_id:
            self._by_id[call_id] = call
            call.call_id = call.call_id or call_id
        if index is not None:
            self._by_index[index] = call
        return call

    @staticmethod
    def _announce(call: _Call) -> list[LlmEvent]:
        if call.announced:
            return []
        call.announced = True
        call.call_id = call.call_id or new_id("tcl").replace("tcl_", "call_")
        events: list[LlmEvent] = [ToolInputStart(call.call_id, call.name)]
        return events + [ToolInputDelta(call.call_id, piece) for piece in call.arguments.pieces]


def _id_of(delta: JsonObject) -> str:
    call_id = delta.get("id")
    return str(call_id) if isinstance(call_id, str | int) and call_id != "" else ""


def _arguments(function: JsonObject) -> str:
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        return encode(arguments).decode()
    return text(function, "arguments")
