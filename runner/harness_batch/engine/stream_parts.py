"""A provider's stream becomes parts of a message; complete tool calls are handed on."""

from collections.abc import Callable, Sequence

from attrs import define, evolve, field

from harness_batch.engine.transcript import Draft
from harness_batch.messages import Failed, Part, Pending, Reasoning, Text, ToolUse
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    QuotasTold,
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
from harness_batch.models.quotas import Quota

CUT_OFF = "interrupted: the reply broke off before the arguments were complete; nothing was run"
"""What the model is told of such a call."""


@define
class StreamParts:
    """State of one reply while it streams. `take` is called with each batch, in order."""

    draft: Draft
    on_call: Callable[[ToolCall, Part], None]
    """Gets each complete tool call with its (pending) part."""
    started: ReplyStarted | None = None
    finish: Finish | None = None
    quotas: tuple[Quota, ...] = ()
    """What the provider told of its rate limits."""
    consumed: bool = False
    """Something of the reply's content arrived."""
    first_at: float | None = None
    """When it did, on trio's clock; the reader sets it."""
    _open: dict[str, Part] = field(factory=dict)
    _pieces: dict[str, list[str]] = field(factory=dict)

    def take(self, events: Sequence[LlmEvent]) -> None:
        """Turn events into parts; text of one batch goes out as one delta a part."""
        deltas: dict[str, list[str]] = {}
        for event in events:
            match event:
                case TextDelta(id=key, text=text) | ReasoningDelta(id=key, text=text):
                    deltas.setdefault(key, []).append(text)
                case ToolInputDelta(call_id=key, json=text):
                    deltas.setdefault(key, []).append(text)
                case _:
                    self._flush(deltas)
                    self._boundary(event)
        self._flush(deltas)

    def close_open_parts(self) -> None:
        """Write down what arrived of parts that never ended."""
        for key in tuple(self._open):
            self._end(key)

    def _boundary(self, event: LlmEvent) -> None:
        match event:
            case QuotasTold(quotas=quotas):
                self.quotas = quotas
            case ReplyStarted():
                self.started = event
            case TextStart(id=key):
                self._begin(key, Text(text=""))
            case ReasoningStart(id=key, redacted=redacted):
                self._begin(key, Reasoning(text="", redacted=redacted))
            case ToolInputStart(call_id=key, name=name):
                self._begin(key, ToolUse(call_id=key, name=name, state=Pending()))
            case TextEnd(id=key):
                self._end(key)
            case ReasoningEnd(id=key, signature=signature):
                self._end(key, signature)
            case ToolCall():
                self._hand_on(event)
            case Finish():
                self.finish = event
            case _:
                raise AssertionError(event)

    def _begin(self, key: str, body: Text | Reasoning | ToolUse) -> None:
        self.consumed = True
        self._open[key] = self.draft.add(body)
        self._pieces[key] = []

    def _flush(self, deltas: dict[str, list[str]]) -> None:
        for key, pieces in deltas.items():
            part = self._open.get(key)
            if part is not None:
                self._pieces[key].extend(pieces)
                self.draft.stream(part, "".join(pieces))
        deltas.clear()

    def _end(self, key: str, signature: str | None = None) -> None:
        part = self._open.pop(key, None)
        if part is None:
            return
        text = "".join(self._pieces.pop(key))
        match part.body:
            case Text():
                self.draft.change(part, Text(text=text))
            case Reasoning(redacted=redacted):
                body = Reasoning(text=text, signature=signature, redacted=redacted)
                self.draft.change(part, body)
            case ToolUse():
                # Only the end of the reply ends a call like that: a whole one is handed on.
                self.draft.change(part, evolve(part.body, state=Failed(input={}, error=CUT_OFF)))
            case _:
                raise AssertionError(part.body)

    def _hand_on(self, call: ToolCall) -> None:
        self.consumed = True
        part = self._open.pop(call.call_id, None)
        self._pieces.pop(call.call_id, None)
        body = ToolUse(
            call_id=call.call_id,
            name=call.name,
            state=Pending(partial_input=call.arguments),
            sealed=call.sealed,
        )
        self.on_call(call, self.draft.change(part, body) if part else self.draft.add(body))
