"""Models behind OpenAI's chat completions, streaming, and the servers that imitate them.

Source: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Sequence

from attrs import define, field
from httpx_sse import ServerSentEvent

from harness_batch.errors import NetworkFailure, ProtocolBroken
from harness_batch.messages import FinishReason, JsonObject
from harness_batch.models import refusals
from harness_batch.models.fields import document, mapping, name, text
from harness_batch.models.hosted import Wire
from harness_batch.models.openai_calls import CallCollector
from harness_batch.models.openai_wire import RequestWriter
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
)
from harness_batch.models.streaming import StreamError
from harness_batch.models.usage_report import chat_usage, stated_cost

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


@define
class _OpenPart:
    """The text or reasoning part that is being streamed."""

    kind: str
    id: str


@define
class OpenAiReply:
    """Reads the chunks of one reply."""

    finished: bool = False
    _started: bool = False
    _part: _OpenPart | None = None
    _parts: int = 0
    _calls: CallCollector = field(factory=CallCollector)
    _reason: FinishReason | None = None
    _refused: bool = False
    _usage: JsonObject | None = None
    _response: tuple[str | None, str | None] = (None, None)
    _skipped: int = 0

    @property
    def complete(self) -> bool:
        """The finish reason is known; usage and end mark may still come."""
        return self._reason is not None

    def read(self, event: ServerSentEvent) -> Sequence[LlmEvent] | None:
        """What the chunk means; None when nothing."""
        if event.data.strip() == "[DONE]":
            return self.end()
        chunk = document(event.data)
        if event.event == "error" or chunk.get("error"):
            raise StreamError(refusals.from_stream(chunk.get("error") or chunk))
        self._note_usage(chunk)
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            if chunk.get("usage") is None:
                self._skipped += 1
                return None
            return []
        events = self._begin(chunk)
        for choice in choices:
            if not isinstance(choice, dict):
                raise ProtocolBroken("the server sent a choice that is not an object")
            if choice.get("index", 0) == 0:
                events.extend(self._choice(choice))
        return events

    def end(self) -> Sequence[LlmEvent]:
        """The stream is over; that is fine once the finish reason is known."""
        if self._reason is None:
            raise NetworkFailure("the stream ended before its end mark")
        self.finished = True
        reason = self._reason
        if self._refused:
            reason = "content_filter"
        elif reason == "stop" and self._calls.any:
            reason = "tool_calls"
        usage = chat_usage(self._usage) if self._usage is not None else None
        cost = stated_cost(self._usage or {})
        return [Finish(reason, usage, self._usage, cost, *self._response, self._skipped)]

    def _begin(self, chunk: JsonObject) -> list[LlmEvent]:
        if self._started:
            return []
        self._started = True
        self._response = (name(chunk, "id"), name(chunk, "model"))
        return [ReplyStarted(200, *self._response)]

    def _choice(self, choice: JsonObject) -> list[LlmEvent]:
        if choice.get("error"):
            raise StreamError(refusals.from_stream(choice["error"]))
        if isinstance(choice.get("usage"), dict):  # Moonshot's place for it
            self._usage = choice["usage"]
        events = self._delta(mapping(choice, "delta"))
        reason = text(choice, "finish_reason")
        if reason == "error":
            raise StreamError(refusals.from_stream("the provider broke the reply off"))
        if reason and self._reason is None:
            self._reason = _REASONS.get(reason, "unknown")
            events += self._close() + self._calls.finish()
        return events

    def _delta(self, delta: JsonObject) -> list[LlmEvent]:
        if self._reason is not None:
            return []
        # Some servers send the same thinking under both names.
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        events: list[LlmEvent] = []
        if isinstance(thinking, str):
            events += self._say("reasoning", thinking)
        elif thinking:
            self._skipped += 1
        events += self._say("text", self._spoken(delta))
        refusal = text(delta, "refusal")
        if refusal:
            self._refused = True
            events += self._say("text", refusal)
        calls = delta.get("tool_calls") or []
        if not isinstance(calls, list):
            raise ProtocolBroken("the server sent tool_calls that are not a list")
        if calls:
            events += self._close()
            events += self._calls.take(calls)
        if delta.get("function_call"):
            self._skipped += 1
        return events

    def _spoken(self, delta: JsonObject) -> str:
        content = delta.get("content")
        if isinstance(content, list):  # Mistral's
            texts = [p.get("text") for p in content if isinstance(p, dict)]
            return "".join(t for t in texts if isinstance(t, str))
        return text(delta, "content")

    def _say(self, kind: str, piece: str) -> list[LlmEvent]:
        if not piece:
            return []
        events: list[LlmEvent] = []
        if self._part is None or self._part.kind != kind:
            events += self._close()
            self._part = _OpenPart(kind, f"block_{self._parts}")
            self._parts += 1
            begin = TextStart if kind == "text" else ReasoningStart
            events.append(begin(self._part.id))
        more = TextDelta if kind == "text" else ReasoningDelta
        return [*events, more(self._part.id, piece)]

    def _close(self) -> list[LlmEvent]:
        part, self._part = self._part, None
        if part is None:
            return []
        return [TextEnd(part.id) if part.kind == "text" else ReasoningEnd(part.id)]

    def _note_usage(self, chunk: JsonObject) -> None:
        usage = chunk.get("usage")
        if usage is None and isinstance(chunk.get("x_groq"), dict):
            usage = chunk["x_groq"].get("usage")
        if isinstance(usage, dict):
            self._usage = usage


WIRE = Wire(
    home="https://api.openai.com/v1",
    path="/chat/completions",
    key_header="authorization",
    writer=RequestWriter,
    reader=OpenAiReply,
)
