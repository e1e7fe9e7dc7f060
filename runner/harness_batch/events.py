"""Everything that can happen in a run, one immutable record each; the journal is their sequence.

An event is a payload in an envelope: `run_id`, `session_id` (None for events of the run itself),
`seq` (1, 2, 3 ... within the run) and `ts` (ISO 8601, UTC). `codec.py` has the JSON form, in which
`type` is the snake_case name of the payload's class.
"""

from typing import Literal, TypeAlias

from attrs import frozen

from harness_batch import records
from harness_batch.messages import Message, Part


@frozen
class RunStarted:
    """The invocation begins."""

    run: records.Run


@frozen
class RunFinished:
    """The invocation ended; the record is complete."""

    run: records.Run


@frozen
class SessionCreated:
    """An item got its session; nothing has run yet."""

    session: records.Session


@frozen
class SessionUpdated:
    """Something known about the session changed (base commit, status)."""

    session: records.Session


@frozen
class SessionStarted:
    """One attempt of the session begins."""

    attempt: records.Attempt


@frozen
class SessionFinished:
    """One attempt ended; the record is complete."""

    attempt: records.Attempt


@frozen
class MessageCreated:
    """A message begins."""

    message: Message


@frozen
class MessageUpdated:
    """A message is finished or failed."""

    message: Message


@frozen
class PartCreated:
    """A part begins; text and arguments follow as deltas."""

    part: Part


@frozen
class PartUpdated:
    """The whole part, as it is now."""

    part: Part


@frozen
class PartDelta:
    """More text (or arguments) of a part that is still streaming."""

    part_id: str
    message_id: str
    delta: str


@frozen
class ModelCallOpened:
    """A request is about to be sent. `reserved_tokens` and `reserved_usd` are its ceiling."""

    call: records.ModelCall
    reserved_tokens: int | None = None
    reserved_usd: str | None = None


@frozen
class ModelCallClosed:
    """The request ended, well or not; the record is complete.

    `settled_usd` is what it counts against budgets: its cost, or its ceiling when nobody told it.
    """

    call: records.ModelCall
    settled_usd: str | None = None


@frozen
class PricesUsed:
    """The prices that calls from here on are costed with: all that is known of one model's."""

    prices: list[records.Price]


@frozen
class ToolCallStarted:
    """A tool call was taken up; its decisions follow."""

    call: records.ToolCall


@frozen
class ToolCallFinished:
    """A tool call ended, or was refused; the record is complete."""

    call: records.ToolCall


@frozen
class PermissionDecided:
    """The rules judged one pattern of a tool call."""

    decision: records.PermissionDecision


@frozen
class CheckFinished:
    """A check or expectation was evaluated."""

    result: records.CheckResult


@frozen
class PatchWritten:
    """The attempt's patch lies in its folder."""

    patch: records.Patch


@frozen
class JobUpdated:
    """A background job changed its state."""

    job: records.Job


@frozen
class ProviderLimitChanged:
    """A provider gets another number of requests at a time, or none for a while, or none at all."""

    limit: records.ProviderLimit


@frozen
class Notice:
    """Something a person should know."""

    level: Literal["info", "warning", "error"]
    text: str


Payload: TypeAlias = (
    RunStarted
    | RunFinished
    | SessionCreated
    | SessionUpdated
    | SessionStarted
    | SessionFinished
    | MessageCreated
    | MessageUpdated
    | PartCreated
    | PartUpdated
    | PartDelta
    | ModelCallOpened
    | ModelCallClosed
    | PricesUsed
    | ToolCallStarted
    | ToolCallFinished
    | PermissionDecided
    | CheckFinished
    | PatchWritten
    | JobUpdated
    | ProviderLimitChanged
    | Notice
)


@frozen
class Event:
    """A payload with its place in the run."""

    run_id: str
    session_id: str | None
    seq: int
    ts: str
    payload: Payload
