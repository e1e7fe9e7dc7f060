"""Models behind OpenAI's Responses API, streaming, and the servers that imitate it.

Source: https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Sequence

from attrs import define, field
from httpx_sse import ServerSentEvent

from harness_batch.errors import NetworkFailure
from harness_batch.messages import FinishReason, JsonObject
from harness_batch.models import refusals
from harness_batch.models.fields import document, mapping, name, text
from harness_batch.models.hosted import Wire
from harness_batch.models.openai_responses_wire import RequestWriter
from harness_batch.models.protocol import Finish, LlmEvent, ReplyStarted
from harness_batch.models.response_items import ItemCollector
from harness_batch.models.streaming import StreamError
from harness_batch.models.usage_report import responses_usage, stated_cost

_REASONS: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
"""Why a reply is incomplete."""
_DELTAS = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}
"""Event -> kind of the item it adds to."""
_NOTHING_NEW = frozenset(
    {
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.done",
        "response.output_text.annotation.added",
        "response.refusal.done",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.done",
    }
)
"""Events that repeat what deltas and items say: signs of life, no more."""


@define
class ResponsesReply:
    """Reads the events of one reply."""

    finished: bool = False
    _items: ItemCollector = field(factory=ItemCollector)
    _started: bool = False
    _skipped: int = 0

    @property
    def complete(self) -> bool:
        """The last event says all at once: whether the reply is whole, and what it took."""
        return self.finished

    def read(self, event: ServerSentEvent) -> Sequence[LlmEvent] | None:
        """What the event means; None when nothing."""
        if event.data.strip() == "[DONE]":
            return self.end()
        data = document(event.data)
        kind = str(data.get("type", event.event))
        if kind == "error" or event.event == "error" or data.get("error"):
            raise StreamError(refusals.from_stream(data.get("error") or data))
        match kind:
            case "response.created" | "response.in_progress" | "response.queued":
                return self._begin(mapping(data, "response"))
            case "response.completed" | "response.incomplete":
                return self._finish(mapping(data, "response"), whole=kind.endswith("completed"))
            case "response.failed" | "response.cancelled":
                failed = mapping(data, "response").get("error")
                raise StreamError(refusals.from_stream(failed or "the reply was broken off"))
            case kind if kind in _NOTHING_NEW:
                return []
            case kind:
                events = self._content(kind, data)
                self._skipped += events is None
                return events

    def end(self) -> Sequence[LlmEvent]:
        """The stream is over; only the last event could have said that the reply is whole."""
        raise NetworkFailure("the stream ended before its end mark")

    def _begin(self, response: JsonObject) -> list[LlmEvent]:
        if self._started:
            return []
        self._started = True
        return [ReplyStarted(200, *_names(response))]

    def _content(self, kind: str, data: JsonObject) -> list[LlmEvent] | None:
        match kind:
            case "response.output_item.added":
                return self._items.added(data, mapping(data, "item"))
            case "response.output_item.done":
                return self._items.done(data, mapping(data, "item"))
            case "response.reasoning_summary_part.added":
                return self._items.next_paragraph(data)
            case "response.function_call_arguments.done":
                self._items.arguments(data)
                return []
            case kind if kind in _DELTAS:
                self._items.refused = self._items.refused or kind == "response.refusal.delta"
                return self._items.more(data, _DELTAS[kind], text(data, "delta"))
            case _:
                return None

    def _finish(self, response: JsonObject, *, whole: bool) -> list[LlmEvent]:
        events = self._begin(response)
        events += self._items.finish(response.get("output"), whole=whole)
        reason: FinishReason = "tool_calls" if self._items.called else "stop"
        if self._items.refused:
            reason = "content_filter"
        if not whole:
            why = text(mapping(response, "incomplete_details"), "reason")
            reason = _REASONS.get(why, "unknown")
        raw = mapping(response, "usage")
        usage = responses_usage(raw) if raw else None
        spent = stated_cost(raw)
        names = _names(response)
        events.append(Finish(reason, usage, raw or None, spent, *names, self._skipped))
        self.finished = True
        return events


def _names(response: JsonObject) -> tuple[str | None, str | None]:
    return name(response, "id"), name(response, "model")


WIRE = Wire(
    home="https://api.openai.com/v1",
    path="/responses",
    key_header="authorization",
    writer=RequestWriter,
    reader=ResponsesReply,
)
