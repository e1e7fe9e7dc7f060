"""What the engine asks of a model, and what a model streams back.

A `Model` is one session's connection to one model: `stream` sends exactly one HTTP request, and
retries are the engine's. Variants: see `table.py`.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeAlias

from attrs import frozen

from harness_batch.config.record import ModelInfo
from harness_batch.messages import FinishReason, JsonObject, ModelRef, TokenUsage, Turn
from harness_batch.models.quotas import Quota


@frozen(kw_only=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: JsonObject


@frozen
class Only:
    """The one tool that the model must call."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none"] | Only


@frozen(kw_only=True)
class ModelRequest:
    """One request. Of two requests of a session the later starts with the bytes of the earlier."""

    system: tuple[str, ...]
    """Blocks in order; they stay apart so that providers can place cache marks."""
    turns: Sequence[Turn]
    """The transcript. Turns other than the last two never change between requests."""
    tools: tuple[ToolSpec, ...]
    """Sorted by name, the same for the whole session."""
    max_output_tokens: int
    tool_choice: ToolChoice = "auto"
    temperature: float | None = None


@frozen
class QuotasTold:
    """The response has begun, and its headers tell of rate limits."""

    quotas: tuple[Quota, ...]


@frozen
class ReplyStarted:
    """The response has begun (headers are in)."""

    http_status: int | None = None
    response_id: str | None = None
    response_model: str | None = None
    usage: TokenUsage | None = None
    """What the provider has counted so far, for replies that break off; None when it did not."""


@frozen
class TextStart:
    """A text part begins."""

    id: str


@frozen
class TextDelta:
    """More of a text part."""

    id: str
    text: str


@frozen
class TextEnd:
    """A text part is complete."""

    id: str


@frozen
class ReasoningStart:
    """Thinking begins; `redacted` marks opaque data instead of text."""

    id: str
    redacted: bool = False


@frozen
class ReasoningDelta:
    """More thinking."""

    id: str
    text: str


@frozen
class ReasoningEnd:
    """Thinking is complete; the signature goes back to the provider unchanged."""

    id: str
    signature: str | None = None


@frozen
class ToolInputStart:
    """A tool call's arguments begin to stream."""

    call_id: str
    name: str


@frozen
class ToolInputDelta:
    """More of the arguments' JSON text."""

    call_id: str
    json: str


@frozen
class ToolCall:
    """A tool call is complete. `arguments` is the JSON text as it came, valid or not."""

    call_id: str
    name: str
    arguments: str
    sealed: str | None = None
    """What goes back with the call unchanged: JSON whose meaning is the provider's."""


@frozen
class Finish:
    """The end mark of the reply."""

    reason: FinishReason
    usage: TokenUsage | None
    usage_raw: Any = None
    provider_cost_usd: Decimal | None = None
    response_id: str | None = None
    response_model: str | None = None
    skipped_events: int = 0
    """Events of unknown kind that were passed over."""


LlmEvent: TypeAlias = (
    QuotasTold
    | ReplyStarted
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolCall
    | Finish
)


class Model(Protocol):
    """One session's connection to one model."""

    @property
    def ref(self) -> ModelRef:
        """Provider and model as the recipe names them."""
        ...

    @property
    def info(self) -> ModelInfo:
        """Limits and prices."""
        ...

    def demand(self) -> None:
        """Raises: AuthFailed when no request can go out, since a key is missing or no key."""
        ...

    async def renew(self) -> bool:
        """After a 401: whether there is another credential to try now.

        Raises: ProviderError when asking for one failed.
        """
        ...

    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[LlmEvent]]]:
        """Send one request; each item holds all events that one read of the socket gave.

        The last event is `Finish`; a stream that ends without one raises NetworkFailure.
        Raises (on entering or iterating): ProviderError in its kinds, HTTP status on it.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection."""
        ...
