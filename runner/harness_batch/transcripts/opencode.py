"""opencode's database: sessions, messages and parts, the latter two with their body as JSON.

`~/.local/share/opencode/opencode.db`, read only. `tokens.input` is without the cache; output is
what is left of `total` where that is told, else output and reasoning together.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from harness_batch.messages import (
    Completed,
    Failed,
    FinishReason,
    PartBody,
    Reasoning,
    Running,
    Text,
    TokenUsage,
    ToolUse,
)
from harness_batch.transcripts.record import Called, Ending, Said, Transcript
from harness_batch.transcripts.values import Source, Values, parsed

AGENT = "opencode"
MAGIC = b"SQLite format 3\0"
_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "tool-calls": "tool_calls",
    "length": "length",
    "content-filter": "content_filter",
}
_TABLES = (
    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN"
    " ('session', 'message', 'part')"
)
_SESSIONS = "SELECT id, parent_id, directory, version FROM session ORDER BY time_created, id"
_MESSAGES = (
    "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
)
_PARTS = "SELECT data FROM part WHERE message_id = ? ORDER BY time_created, id"


def read(file: Path) -> tuple[Transcript, ...]:
    """All sessions, parents before their children. Raises: FaultyInput."""
    source = Source(file)
    try:
        uri = f"{file.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            # A view of these names would run whatever its author wrote, for as long as it likes.
            if connection.execute(_TABLES).fetchone() != (3,):
                raise source.fault("this database has not the tables of opencode")
            return tuple(_sessions(connection, source))
    except sqlite3.Error as error:
        raise source.fault(f"this is no database of opencode that can be read: {error}") from None


def _sessions(connection: sqlite3.Connection, source: Source) -> Iterator[Transcript]:
    for session_id, parent_id, directory, version in connection.execute(_SESSIONS).fetchall():
        said: list[Said] = []
        ending: Ending = "passed"
        role = None
        for message_id, created, data in connection.execute(_MESSAGES, [session_id]):
            body = parsed(str(data), source) | {"time_created": created}
            message = Values(source, body)
            parts = [
                Values(source, parsed(str(row[0]), source))
                for row in connection.execute(_PARTS, [message_id])
            ]
            said.append(_said(str(message_id), message, parts))
            role = role or message.text("agent") or message.text("mode")
            if message.text("role") == "assistant":
                ending = _ending(message)
        yield Transcript(
            agent=AGENT,
            id=str(session_id),
            parent_id=None if parent_id is None else str(parent_id),
            said=tuple(said),
            ending=ending,
            role=role,
            version=None if version is None else str(version),
            folder=None if directory is None else str(directory),
        )


def _ending(message: Values) -> Ending:
    error = message.object("error")
    if error is None:
        return "passed"
    return "cancelled" if error.text("name") == "MessageAbortedError" else "errored"


def _said(message_id: str, message: Values, parts: list[Values]) -> Said:
    bodies = tuple(body for part in parts if (body := _body(part)) is not None)
    at = message.time("time_created")
    if message.text("role") != "assistant":
        return Said(id=message_id, role="user", at=at, bodies=bodies)
    finished = [part for part in parts if part.text("type") == "step-finish"]
    steps = [step for step in finished if step.object("tokens") is not None] or [message]
    return Said(
        id=message_id,
        role="assistant",
        at=at,
        bodies=bodies,
        calls=tuple(_called(message, step) for step in steps),
        finish=_FINISH.get(message.text("finish") or "", "unknown"),
        error="aborted" if _ending(message) == "cancelled" else None,
    )


def _called(message: Values, step: Values) -> Called:
    tokens = step.object("tokens")
    return Called(
        provider=message.text("providerID") or "unknown",
        model=message.text("modelID") or "unknown",
        usage=None if tokens is None else _usage(tokens),
        usage_raw=None if tokens is None else tokens.body,
        reported_usd=step.money("cost"),
    )


def _usage(tokens: Values) -> TokenUsage:
    cache = tokens.object("cache")
    read, written = (0, 0) if cache is None else (cache.whole("read"), cache.whole("write"))
    before = tokens.whole("input") + read + written
    output = tokens.whole("output") + tokens.whole("reasoning")
    total = tokens.whole("total")
    return TokenUsage(
        input=before,
        cache_read=read,
        cache_write_5m=written,
        output=total - before if total > before else output,
        reasoning=tokens.whole("reasoning"),
    )


def _body(part: Values) -> PartBody | None:
    match part.text("type"):
        case "text":
            return Text(text=part.text("text") or "", synthetic=part.body.get("synthetic") is True)
        case "reasoning":
            return Reasoning(text=part.text("text") or "")
        case "tool":
            return _tool_use(part)
        case _:
            return None


def _tool_use(part: Values) -> ToolUse:
    state = part.object("state") or Values(part.source, {})
    given = state.object("input")
    arguments = {} if given is None else given.body
    match state.text("status"):
        case "completed":
            time = state.object("time")
            took = 0 if time is None else time.whole("end") - time.whole("start")
            told: Completed | Failed | Running = Completed(
                input=arguments,
                title=state.text("title") or "",
                output=state.text("output") or "",
                duration_ms=max(0, took),
            )
        case "error":
            told = Failed(input=arguments, error=state.text("error") or "failed")
        case _:
            told = Running(input=arguments)
    return ToolUse(call_id=part.need("callID"), name=part.need("tool"), state=told)
