"""Events become rows: which table, which key, which values. Decides; database.py writes.

The same journal gives the same rows however it is cut into batches. A part becomes a row when it is
whole, when its message or attempt ends, or when the journal does; never per delta.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import AttrsInstance, define, evolve, field, fields

from harness_batch import events, records
from harness_batch.codec import plain, tag
from harness_batch.events import Event
from harness_batch.messages import (
    Compaction,
    Completed,
    Failed,
    Message,
    Part,
    PartBody,
    Pending,
    Reasoning,
    StepFinish,
    StepStart,
    Subtask,
    Text,
    ToolUse,
)

Row: TypeAlias = dict[str, Any]
"""Column -> value, not yet of the database's types; a column that is left out is NULL."""


RUN: Final = "run"
SESSION: Final = "session"
ATTEMPT: Final = "attempt"
MESSAGE: Final = "message"
PART: Final = "part"
MODEL_CALL: Final = "model_call"
PRICE: Final = "price"
TOOL_CALL: Final = "tool_call"
DECISION: Final = "permission_decision"
CHECK: Final = "check_result"
PATCH: Final = "patch"
JOB: Final = "job"
PROVIDER_LIMIT: Final = "provider_limit"
NOTICE: Final = "notice"

TABLES: Final = (
    RUN,
    SESSION,
    ATTEMPT,
    MESSAGE,
    PART,
    MODEL_CALL,
    PRICE,
    TOOL_CALL,
    DECISION,
    CHECK,
    PATCH,
    JOB,
    PROVIDER_LIMIT,
    NOTICE,
)
"""Every table that events fill."""


@define
class _OpenPart:
    """A part that is still streaming."""

    part: Part
    deltas: list[str] = field(factory=list)

    def now(self) -> Part:
        """The part with what has come so far."""
        return evolve(self.part, body=_with_more(self.part.body, "".join(self.deltas)))


class Rows:
    """The rows of the events taken since the last `drain`, the newest of each key."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[object, Row | AttrsInstance]] = {}
        self._open: dict[str, _OpenPart] = {}
        self.reached: dict[str, int] = {}
        """Run -> `seq` of the newest event taken."""

    def drain(self) -> Mapping[str, list[Row]]:
        """Table -> rows with distinct keys; forgets them."""
        rows, self._rows = self._rows, {}
        return {
            name: [row if isinstance(row, dict) else _columns(row) for row in found.values()]
            for name, found in rows.items()
        }

    def finish(self) -> None:
        """The journal ended: what is still streaming becomes rows as it is."""
        for part_id in tuple(self._open):
            self._close(part_id)

    def take(self, event: Event) -> None:  # noqa: C901, PLR0912 - one case an event, none of them more than a line
        """One more event, in the order of the journal."""
        self.reached[event.run_id] = event.seq
        match event.payload:
            case events.SessionCreated(session) | events.SessionUpdated(session):
                self._put(SESSION, session.session_id, session)
            case events.SessionStarted(attempt):
                self._put(ATTEMPT, attempt.attempt_id, attempt)
            case events.SessionFinished(attempt):
                self._put(ATTEMPT, attempt.attempt_id, attempt)
                self._close_of(attempt.session_id)
            case events.MessageCreated(message) | events.MessageUpdated(message):
                self._put(MESSAGE, message.id, _message_row(message))
                if message.finish_reason is not None or message.error is not None:
                    self._close_of(message.id)
            case events.PartCreated(part):
                self._begin(part)
            case events.PartUpdated(part):
                self._update(part)
            case events.PartDelta(part_id, _, delta):
                if part_id in self._open:
                    self._open[part_id].deltas.append(delta)
            case events.ModelCallOpened(model_call) | events.ModelCallClosed(model_call):
                self._put(MODEL_CALL, model_call.model_call_id, model_call)
            case events.ToolCallStarted(tool_call) | events.ToolCallFinished(tool_call):
                self._put(TOOL_CALL, tool_call.tool_call_id, tool_call)
            case events.PermissionDecided(decision):
                self._put(DECISION, event.seq, {**_columns(decision), "seq": event.seq})
            case events.CheckFinished(result):
                self._put(CHECK, event.seq, {**_columns(result), "seq": event.seq})
            case events.PatchWritten(patch):
                self._put(PATCH, patch.attempt_id, patch)
            case events.JobUpdated(job):
                self._put(JOB, job.job_id, job)
            case _:
                self._take_of_run(event)

    def _take_of_run(self, event: Event) -> None:
        """Events that belong to no session, or to any."""
        match event.payload:
            case events.RunStarted(run) | events.RunFinished(run):
                self._put(RUN, run.run_id, run)
            case events.PricesUsed(prices):
                self._put_prices(prices)
            case events.ProviderLimitChanged(limit):
                self._put(PROVIDER_LIMIT, event.seq, {**_columns(limit), **_of_run(event)})
            case events.Notice(level, text):
                told = {"session_id": event.session_id, "level": level, "text": text}
                self._put(NOTICE, event.seq, {**_of_run(event), **told, "ts": event.ts})
            case _:
                raise AssertionError(event.payload)

    def _put_prices(self, prices: Iterable[records.Price]) -> None:
        for price in prices:
            key = (price.price_version, price.provider, price.model, price.unit)
            self._put(PRICE, key, price)

    def _put(self, table: str, key: object, row: Row | AttrsInstance) -> None:
        """`key` is unique in the journal of one run; a later row takes the place of an earlier."""
        self._rows.setdefault(table, {})[key] = row

    def _begin(self, part: Part) -> None:
        if _is_whole(part.body):
            self._put(PART, part.id, _part_row(part))
        if isinstance(part.body, Text | Reasoning | ToolUse):
            self._open[part.id] = _OpenPart(part)

    def _update(self, part: Part) -> None:
        if _is_whole(part.body):
            self._open.pop(part.id, None)
            self._put(PART, part.id, _part_row(part))
        else:
            self._open[part.id] = _OpenPart(part)

    def _close(self, part_id: str) -> None:
        self._put(PART, part_id, _part_row(self._open.pop(part_id).now()))

    def _close_of(self, owner: str) -> None:
        """All that is streaming in a message or session."""
        for part_id, streaming in tuple(self._open.items()):
            if owner in (streaming.part.session_id, streaming.part.message_id):
                self._close(part_id)


def _is_whole(body: PartBody) -> bool:
    """Whether a part with this body may be a row already. A begun text may be empty still."""
    match body:
        case Text(text=text) | Reasoning(text=text):
            return bool(text)
        case ToolUse(state=state):
            return isinstance(state, Completed | Failed)
        case StepStart() | StepFinish() | Subtask() | Compaction():
            return True


def _with_more(body: PartBody, delta: str) -> PartBody:
    match body:
        case Text() | Reasoning():
            return evolve(body, text=body.text + delta)
        case ToolUse(state=Pending(partial_input=begun)):
            return evolve(body, state=Pending(partial_input=begun + delta))
        case _:
            return body


def _columns(record: AttrsInstance) -> Row:
    """A record of records.py: its fields are the columns, but for a trailing underscore."""
    cls = type(record)
    return {column: getattr(record, name) for column, name in _COLUMNS[cls]}


_COLUMNS: Final[Mapping[type, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {
        cls: tuple((f.name.rstrip("_"), f.name) for f in fields(cls))
        for cls in (
            records.Run,
            records.Session,
            records.Attempt,
            Message,
            records.ModelCall,
            records.Price,
            records.ToolCall,
            records.PermissionDecision,
            records.CheckResult,
            records.Patch,
            records.Job,
            records.ProviderLimit,
        )
    }
)


def _message_row(message: Message) -> Row:
    row = _columns(message)
    row["message_id"] = row.pop("id")
    return row


def _part_row(part: Part) -> Row:
    return {
        "part_id": part.id,
        "message_id": part.message_id,
        "session_id": part.session_id,
        "idx": part.idx,
        "type": tag(type(part.body)),
        "body": plain(part.body),
    }


def _of_run(event: Event) -> Row:
    return {"run_id": event.run_id, "seq": event.seq}
