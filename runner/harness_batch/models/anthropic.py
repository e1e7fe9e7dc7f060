"""Models behind Anthropic's Messages API, streaming.

Source: https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from collections.abc import Sequence
from typing import Any

from attrs import define, field
from httpx_sse import ServerSentEvent

from harness_batch.errors import NetworkFailure, ProtocolBroken
from harness_batch.messages import FinishReason, JsonObject, TokenUsage
from harness_batch.models import refusals
from harness_batch.models.anthropic_wire import RequestWriter
from harness_batch.models.encoded import encode
from harness_batch.models.fields import count, document, mapping, name, share, text
from harness_batch.models.hosted import Wire
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.models.streaming import StreamError

_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


@define
class _Block:
    """A content block that is being streamed."""

    event_id: str
    kind: str
    name: str = ""
    pieces: list[str] = field(factory=list)
    signature: list[str] = field(factory=list)
    input: JsonObject = field(factory=dict)
    """Arguments that came whole with the start."""


@define
class AnthropicReply:
    """Reads the events of one reply."""

    finished: bool = False
    _blocks: dict[int, _Block] = field(factory=dict)
    _strange: set[int] = field(factory=set)
    """Blocks of unknown kind; their events are passed over too."""
    _usage: dict[str, Any] = field(factory=dict)
    _reason: FinishReason | None = None
    _called: bool = False
    _response: tuple[str | None, str | None] = (None, None)
    _skipped: int = 0

    @property
    def complete(self) -> bool:
        """Stop reason known and no block open."""
        return self._reason is not None and not self._blocks

    def read(self, event: ServerSentEvent) -> Sequence[LlmEvent] | None:
        """What the event means; None when nothing."""
        data = document(event.data)
        kind = str(data.get("type", event.event))
        # Servers that imitate the API have put the error's own type where the event's belongs.
        if "error" in {kind, event.event} or data.get("error"):
            raise StreamError(refusals.from_stream(data.get("error") or data))
        match kind:
            case "message_start":
                return self._begin(mapping(data, "message"))
            case "message_delta":
                return self._closing(data)
            case "message_stop":
                return self._finish()
            case "ping":
                return None
            case kind:
                return self._content(kind, data)

    def end(self) -> Sequence[LlmEvent]:
        """The stream is over; only a lost end mark is forgiven."""
        if not self.complete:
            raise NetworkFailure("the stream ended before its end mark")
        return self._finish()

    def _content(self, kind: str, data: JsonObject) -> Sequence[LlmEvent] | None:
        match kind:
            case "content_block_delta":
                return self._delta(data)
            case "content_block_start":
                return self._start(data)
            case "content_block_stop":
                return self._stop(_index(data))
            case _:
                return self._skip()

    def _skip(self) -> Sequence[LlmEvent] | None:
        self._skipped += 1
        return None

    def _begin(self, message: JsonObject) -> Sequence[LlmEvent]:
        self._response = (name(message, "id"), name(message, "model"))
        self._note_usage(mapping(message, "usage"))
        return [ReplyStarted(200, *self._response, usage=usage_of(self._usage))]

    def _start(self, data: JsonObject) -> Sequence[LlmEvent] | None:
        index, content = _index(data), mapping(data, "content_block")
        block = _Block(f"block_{index}", text(content, "type"))
        match block.kind:
            case "text":
                begin: list[LlmEvent] = [TextStart(block.event_id)]
                first = text(content, "text")
            case "thinking":
                begin = [ReasoningStart(block.event_id)]
                first = text(content, "thinking")
                block.signature.append(text(content, "signature"))
            case "redacted_thinking":
                begin = [ReasoningStart(block.event_id, redacted=True)]
                first = text(content, "data")
            case "tool_use":
                block.event_id, block.name = text(content, "id"), text(content, "name")
                if not block.event_id or not block.name:
                    raise ProtocolBroken("the server sent a tool call without id or name")
                begin, first = [ToolInputStart(block.event_id, block.name)], ""
                block.input = mapping(content, "input")
            case _:
                self._strange.add(index)
                return self._skip()
        self._blocks[index] = block
        return begin + self._more(block, first)

    def _delta(self, data: JsonObject) -> Sequence[LlmEvent] | None:
        index, delta = _index(data), mapping(data, "delta")
        block = self._blocks.get(index)
        if block is None:
            if index in self._strange:
                return self._skip()
            raise ProtocolBroken("the server sent more of a content block that is not open")
        match block.kind, delta.get("type"):
            case "text", "text_delta":
                return self._more(block, text(delta, "text"))
            case "thinking", "thinking_delta":
                return self._more(block, text(delta, "thinking"))
            case "thinking", "signature_delta":
                block.signature.append(text(delta, "signature"))
                return []
            case "tool_use", "input_json_delta":
                return self._more(block, text(delta, "partial_json"))
            case _:
                return self._skip()

    def _more(self, block: _Block, piece: str) -> list[LlmEvent]:
        if not piece:
            return []
        match block.kind:
            case "text":
                return [TextDelta(block.event_id, piece)]
            case "tool_use":
                block.pieces.append(piece)
                return [ToolInputDelta(block.event_id, piece)]
            case _:
                return [ReasoningDelta(block.event_id, piece)]

    def _stop(self, index: int) -> Sequence[LlmEvent] | None:
        if index in self._strange:
            self._strange.discard(index)
            return self._skip()
        block = self._blocks.pop(index, None)
        if block is None:
            return self._skip()
        match block.kind:
            case "text":
                return [TextEnd(block.event_id)]
            case "tool_use":
                self._called = True
                arguments = "".join(block.pieces) or encode(block.input).decode()
                return [ToolCall(block.event_id, block.name, arguments)]
            case _:
                return [ReasoningEnd(block.event_id, "".join(block.signature) or None)]

    def _closing(self, data: JsonObject) -> Sequence[LlmEvent]:
        self._note_usage(mapping(data, "usage"))
        reason = text(mapping(data, "delta"), "stop_reason")
        if reason:
            self._reason = _REASONS.get(reason, "unknown")
        return []

    def _finish(self) -> Sequence[LlmEvent]:
        if self._reason is None:
            raise ProtocolBroken("the server ended the reply without a stop reason")
        events: list[LlmEvent] = []
        for index in tuple(self._blocks):
            events.extend(self._stop(index) or ())
        reason: FinishReason = self._reason
        if reason == "stop" and self._called:
            reason = "tool_calls"
        raw = dict(self._usage) or None
        events.append(
            Finish(reason, usage_of(self._usage), raw, None, *self._response, self._skipped)
        )
        self.finished = True
        return events

    def _note_usage(self, usage: JsonObject) -> None:
        # Figures are cumulative; a later null says nothing new.
        self._usage.update({key: value for key, value in usage.items() if value is not None})


def usage_of(raw: JsonObject) -> TokenUsage | None:
    """Anthropic's `input_tokens` leaves the cache out; ours is the total.

    None when it does not tell the tokens.
    """
    taken, made = count(raw, "input_tokens"), count(raw, "output_tokens")
    if taken is None or made is None:
        return None
    read, written = share(raw, "cache_read_input_tokens"), share(raw, "cache_creation_input_tokens")
    by_age = raw.get("cache_creation")
    hour = share(by_age, "ephemeral_1h_input_tokens") if isinstance(by_age, dict) else 0
    written = max(written, hour)
    details = raw.get("output_tokens_details")
    return TokenUsage(
        input=taken + read + written,
        cache_read=read,
        cache_write_5m=written - hour,
        cache_write_1h=hour,
        output=made,
        reasoning=share(details, "thinking_tokens") if isinstance(details, dict) else 0,
    )


def _index(data: JsonObject) -> int:
    index = data.get("index")
    if not isinstance(index, int):
        raise ProtocolBroken("the server sent a content block event without its index")
    return index


WIRE = Wire(
    home="https://api.anthropic.com",
    path="/v1/messages",
    key_header="x-api-key",
    writer=RequestWriter,
    reader=AnthropicReply,
    headers={"anthropic-version": "2023-06-01"},
)
