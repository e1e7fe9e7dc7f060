"""What a session says: sessions' messages and their parts, immutable and JSON-able."""

from typing import Any, Literal, TypeAlias

from attrs import Factory, frozen

JsonObject: TypeAlias = dict[str, Any]
"""A parsed JSON object; the one loosely typed thing, as it is what models and tools exchange."""

Role = Literal["user", "assistant"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "unknown"]


@frozen(kw_only=True)
class TokenUsage:
    """Tokens of one or more model calls. `input` is the total, cache included."""

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        """Field by field."""
        return TokenUsage(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write_5m=self.cache_write_5m + other.cache_write_5m,
            cache_write_1h=self.cache_write_1h + other.cache_write_1h,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )


@frozen
class ModelRef:
    """`provider/model`, split at the first slash."""

    provider: str
    model: str

    @classmethod
    def parse(cls, text: str) -> "ModelRef":
        """Raises: ValueError without a slash or with an empty half."""
        provider, slash, model = text.partition("/")
        if not (slash and provider and model):
            raise ValueError(f"{text!r} is not PROVIDER/MODEL")
        return cls(provider, model)

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


@frozen(kw_only=True)
class Text:
    """What the model or the user says. Synthetic text is the runner's (reminders, notes)."""

    text: str
    synthetic: bool = False


@frozen(kw_only=True)
class Reasoning:
    """Thinking; the signature goes back to the provider unchanged."""

    text: str
    signature: str | None = None
    redacted: bool = False
    """`text` is opaque provider data that goes back unchanged."""


@frozen(kw_only=True)
class Image:
    """A picture, as it goes to models that take one."""

    media_type: str
    data: str
    """The file in base64."""


@frozen(kw_only=True)
class Pending:
    """The arguments are still streaming."""

    partial_input: str = ""


@frozen(kw_only=True)
class Running:
    """Permitted and started."""

    input: JsonObject
    title: str | None = None
    metadata: JsonObject = Factory(dict)


@frozen(kw_only=True)
class Completed:
    """Finished; `output` is what the model reads."""

    input: JsonObject
    title: str
    output: str
    metadata: JsonObject = Factory(dict)
    duration_ms: int = 0
    images: tuple[Image, ...] = ()
    """What the model sees beside the output."""


@frozen(kw_only=True)
class Failed:
    """Refused, interrupted or failed; `error` is what the model reads."""

    input: JsonObject
    error: str


ToolState: TypeAlias = Pending | Running | Completed | Failed


@frozen(kw_only=True)
class ToolUse:
    """One tool call of the model and what became of it. `call_id` is the provider's."""

    call_id: str
    name: str
    state: ToolState
    sealed: str | None = None
    """JSON of the provider's that goes back with the call unchanged."""


@frozen(kw_only=True)
class StepStart:
    """A model reply begins."""

    step: int


@frozen(kw_only=True)
class StepFinish:
    """A model reply is complete. `cost_usd` is a decimal as text; None is unpriced."""

    usage: TokenUsage
    cost_usd: str | None
    reason: FinishReason


@frozen(kw_only=True)
class Subtask:
    """A child session was started here."""

    child_session: str
    agent: str
    description: str
    background: bool = False


@frozen(kw_only=True)
class Compaction:
    """History up to and with that message is replaced by the summary from here on."""

    replaces_up_to: str
    summary: str


PartBody: TypeAlias = Text | Reasoning | ToolUse | StepStart | StepFinish | Subtask | Compaction


@frozen(kw_only=True)
class Part:
    """One piece of a message, in order `idx`."""

    id: str
    message_id: str
    session_id: str
    idx: int
    body: PartBody


@frozen(kw_only=True)
class Message:
    """Head of a message; its content is its parts. `created_at` is ISO 8601, UTC."""

    id: str
    session_id: str
    attempt_id: str
    role: Role
    created_at: str
    model: str | None = None
    agent: str | None = None
    finish_reason: FinishReason | None = None
    """None while the reply is streaming, and for user messages."""
    error: str | None = None
    """`aborted`, or the kind of the provider's error."""


@frozen
class Turn:
    """A message with its parts, as the transcript keeps it."""

    message: Message
    parts: tuple[Part, ...] = ()

    def text(self) -> str:
        """All that was said aloud, synthetic text left out."""
        texts = (p.body for p in self.parts)
        return "".join(t.text for t in texts if isinstance(t, Text) and not t.synthetic)

    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tool calls in stream order."""
        return tuple(p.body for p in self.parts if isinstance(p.body, ToolUse))
