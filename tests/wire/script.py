"""The language of scripts: what the model says, and how badly it is delivered."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import Factory, field, frozen


@frozen
class Say:
    """A text block."""

    text: str


@frozen
class Think:
    """A thinking block. To Responses the signature is its encrypted content; chat has no place."""

    text: str
    signature: str = "c2lnbmF0dXJl"


@frozen
class Redacted:
    """An opaque thinking block; Anthropic's format only."""

    data: str


@frozen
class Call:
    """A tool call. Arguments given as a text go out as they are, valid JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = Factory(dict)
    call_id: str | None = None
    extra: Mapping[str, Any] = Factory(dict)
    """Chat completions: `extra_content`, which Gemini wants back with the call."""


@frozen(kw_only=True)
class Usage:
    """What the reply reports. `input` leaves the cache out; the formats add it where they do."""

    input: int = 100
    output: int = 20
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    reasoning: int = 0
    cost: float | None = None
    """OpenRouter's `usage.cost`, in US dollars."""


@frozen(kw_only=True)
class Delivery:
    """How the bytes of a reply are sent."""

    chunk: int | None = None
    """Bytes a write and an HTTP chunk; None: one event a write; 0: all in one."""
    newline: Literal["\n", "\r\n", "\r"] = "\n"
    bom: bool = False
    comments: bool = False
    """A keep-alive comment before each event."""
    ids: bool = False
    """An `id:` line in each event."""
    unknown_events: bool = False
    """Events of unknown kind in between."""
    usage: bool = True
    end_mark: bool = True
    """`message_stop`, `[DONE]`; in Responses the end mark is what the reply came to."""
    last_blank_line: bool = True
    cut_after: int | None = None
    """The connection is cut after that many bytes of the body."""
    clean_cut: bool = False
    """The cut body ends as if it were complete."""
    silent_after: int | None = None
    """Nothing more comes after that many bytes, and the connection stays open."""
    trickle: float | None = None
    """Seconds between keep-alive comments that follow `silent_after` for ever."""
    pause: float | None = None
    """Seconds between writes."""
    first_byte: float = 0.0
    """Seconds before the reply begins."""
    headers: Mapping[str, str] = Factory(dict)
    """More of them."""
    framing: Literal["chunked", "close", "length"] = "chunked"
    keep_alive: bool = True
    error_after: tuple[int, Mapping[str, Any]] | None = None
    """After that many events, this error object stands in the stream."""
    arguments: Literal["pieces", "whole"] = "pieces"
    tool_deltas: Literal["standard", "no-index", "same-index", "no-id", "repeated", "new-ids"] = (
        "standard"
    )
    """How an OpenAI-compatible server numbers the deltas of tool calls."""
    finish_reason: str | None = None
    """In place of the right one."""
    reasoning_key: str = "reasoning_content"


Block: TypeAlias = Say | Think | Redacted | Call


@frozen(init=False)
class Reply:
    """A reply of the model."""

    blocks: tuple[Block, ...]
    usage: Usage = field()
    stop: str | None
    """The format's own word; None: what the blocks suggest."""
    delivery: Delivery

    def __init__(
        self,
        *blocks: Block,
        usage: Usage | None = None,
        stop: str | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        self.__attrs_init__(blocks, usage or Usage(), stop, delivery or Delivery())


@frozen
class Refuse:
    """An HTTP answer that is no reply."""

    status: int
    body: Mapping[str, Any] | str = "refused"
    headers: Mapping[str, str] = Factory(dict)
    content_type: str = "application/json"


@frozen
class Raw:
    """Bytes in place of an HTTP answer; then the connection is closed, or left open."""

    data: bytes = b""
    hang: bool = False


Answer: TypeAlias = Reply | Refuse | Raw


@frozen(init=False)
class Tries:
    """Answers to repeated requests of one step, in order; the last one stays."""

    answers: tuple[Answer, ...]

    def __init__(self, *answers: Answer) -> None:
        self.__attrs_init__(answers)


Script: TypeAlias = Sequence[Answer | Tries]
