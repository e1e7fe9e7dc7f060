"""One session read back with all that hangs on it, child sessions included: from a run's journal,
or from a database when that is all that is left.

Of a session that was cut off and begun again only what came after its last new beginning is told.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
from attrs import define, field, frozen

from harness_batch import events, records
from harness_batch.codec import body_of
from harness_batch.errors import StorageError, UsageError
from harness_batch.messages import JsonObject, Message, Part, PartBody, Pending, ToolUse
from harness_batch.store.database import closed_config, mapped_errors
from harness_batch.store.replay import read_events

Json: TypeAlias = Any
"""A value of a row."""

_SESSION = (
    "session_id, run_id, parent_id, depth, item_key, item_digest, recipe, params, agent, model,"
    " repo, ref, base_sha, status, reason, recipe_file, matrix"
)
_CALL = (
    "model_call_id, session_id, attempt_id, message_id, purpose, provider, request_model, step,"
    ' "try", CAST(started_at AS VARCHAR) AS started_at, finish_reason, error_kind, error,'
    " http_status, input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,"
    " output_tokens, reasoning_tokens"
)


@frozen
class Piece:
    """A part of a message. `arguments`: of a tool call, as the model wrote them."""

    id: str
    idx: int
    body: PartBody
    arguments: str | None = None


@frozen(kw_only=True)
class Story:
    """A session and those that it started, in the order in which they began."""

    sessions: tuple[records.Session, ...]
    """The first one is the one that was asked for."""
    attempts: Mapping[str, tuple[str, ...]]
    """Session -> its attempts in order."""
    calls: tuple[records.ModelCall, ...]
    messages: Mapping[str, Message]
    pieces: Mapping[str, tuple[Piece, ...]]
    """Message -> its parts in order."""
    checks: tuple[records.CheckResult, ...]
    argv: tuple[str, ...] = ()
    """The run's command line."""


@define
class _Gathered:
    """Everything of one run, or of one database, that stories are made of."""

    sessions: dict[str, records.Session] = field(factory=dict)
    attempts: dict[str, records.Attempt] = field(factory=dict)
    superseded: set[str] = field(factory=set)
    """Attempts of invocations before the last one."""
    calls: dict[str, records.ModelCall] = field(factory=dict)
    messages: dict[str, Message] = field(factory=dict)
    pieces: dict[str, dict[str, Piece]] = field(factory=dict)
    checks: list[records.CheckResult] = field(factory=list)
    argv: tuple[str, ...] = ()

    def take(self, event: events.Event) -> None:
        """One more event of the journal."""
        match event.payload:
            case events.RunStarted(run):
                self.argv = tuple(run.argv)
                self.superseded |= self.attempts.keys()
            case events.SessionCreated(session) | events.SessionUpdated(session):
                self.sessions[session.session_id] = session
            case events.SessionStarted(attempt) | events.SessionFinished(attempt):
                self.attempts[attempt.attempt_id] = attempt
            case events.MessageCreated(message) | events.MessageUpdated(message):
                self.messages[message.id] = message
            case events.PartCreated(part) | events.PartUpdated(part):
                self._piece(part)
            case events.ModelCallOpened(call) | events.ModelCallClosed(call):
                self.calls[call.model_call_id] = call
            case events.CheckFinished(result):
                self.checks.append(result)
            case _:
                pass

    def _piece(self, part: Part) -> None:
        of_message = self.pieces.setdefault(part.message_id, {})
        known = of_message.get(part.id)
        arguments = known.arguments if known else None
        match part.body:
            case ToolUse(state=Pending(partial_input=text)) if text:
                arguments = text
            case _:
                pass
        of_message[part.id] = Piece(part.id, part.idx, part.body, arguments)

    def told(self, session_id: str) -> Story:
        """The story of one session."""
        tree = list(self._tree(session_id))
        attempts = {one.session_id: self._standing(one) for one in tree}
        # A child is its parent's attempt's: of one that does not count, neither does the child.
        first = min(attempts[session_id], default="")
        tree = [s for s in tree if s.session_id == session_id or self._began(s) >= first[4:]]
        counting = {attempt for one in tree for attempt in attempts[one.session_id]}
        return Story(
            sessions=tuple(tree),
            attempts=attempts,
            calls=tuple(
                call for _, call in sorted(self.calls.items()) if call.attempt_id in counting
            ),
            messages={i: m for i, m in sorted(self.messages.items()) if m.attempt_id in counting},
            pieces={
                message: tuple(sorted(pieces.values(), key=lambda piece: piece.idx))
                for message, pieces in self.pieces.items()
            },
            checks=tuple(check for check in self.checks if check.attempt_id in counting),
            argv=self.argv,
        )

    def _tree(self, session_id: str) -> Iterator[records.Session]:
        """It and those below it; ids sort by time of birth."""
        known = {session_id}
        for one, session in sorted(self.sessions.items()):
            if one == session_id or session.parent_id in known:
                known.add(one)
                yield session

    def _standing(self, session: records.Session) -> tuple[str, ...]:
        """The attempts since the session was last begun anew: a retry follows what failed only.

        A child has one for each time that it was told to go on.
        """
        own = [a for a in self.attempts.values() if a.session_id == session.session_id]
        own.sort(key=lambda attempt: attempt.n)
        newest = [a for a in own if a.attempt_id not in self.superseded]
        own = newest or own
        if session.parent_id is None:
            cut = max((at for at, a in enumerate(own[:-1]) if a.status != "failed"), default=-1)
            own = own[cut + 1 :]
        return tuple(attempt.attempt_id for attempt in own)

    @staticmethod
    def _began(session: records.Session) -> str:
        return session.session_id[4:]


def story_of_journal(journal: Path, session_id: str) -> Story:
    """Raises: StorageError; UsageError when the journal does not know the session."""
    gathered = _Gathered()
    for event in read_events(journal):
        gathered.take(event)
    if session_id not in gathered.sessions:
        raise UsageError(f"{journal} has no session {session_id!r}")
    return gathered.told(session_id)


def story_of_database(database: Path, session_id: str) -> Story:
    """As `story_of_journal`, but arguments that were no JSON are lost.

    Raises: StorageError; UsageError when the database does not know the session.
    """
    with (
        mapped_errors(f"cannot read {database}"),
        duckdb.connect(str(database), read_only=True, config=closed_config()) as connection,
    ):
        gathered = _gathered(_Asked(connection, session_id))
    if session_id not in gathered.sessions:
        raise UsageError(f"{database} has no session {session_id!r}")
    return gathered.told(session_id)


@frozen
class _Asked:
    connection: duckdb.DuckDBPyConnection
    session_id: str

    def rows(self, columns: str, table: str) -> Iterator[dict[str, Json]]:
        """Rows of the session and of those that it started."""
        tree = "SELECT session_id FROM session_tree WHERE ancestor_id = ?"
        sql = f"SELECT {columns} FROM {table} WHERE session_id IN ({tree})"  # noqa: S608 - our own names
        cursor = self.connection.execute(sql, [self.session_id])
        names = [column[0] for column in cursor.description or ()]
        for row in cursor.fetchall():
            yield dict(zip(names, row, strict=True))


def _gathered(asked: _Asked) -> _Gathered:
    found = _Gathered()
    for row in asked.rows(_SESSION, "session"):
        row |= {name: _object(row[name]) for name in ("params", "matrix")}
        found.sessions[row["session_id"]] = records.Session(**row)
    for row in asked.rows("attempt_id, session_id, n, status", "attempt"):
        found.attempts[row["attempt_id"]] = records.Attempt(started_at="", **row)
    for row in asked.rows(_CALL, "model_call"):
        found.calls[row["model_call_id"]] = records.ModelCall(try_=row.pop("try"), **row)
    for row in asked.rows("message_id AS id, session_id, attempt_id, role", "message"):
        found.messages[row["id"]] = Message(created_at="", **row)
    for row in asked.rows("part_id, message_id, idx, body", "part"):
        piece = Piece(row["part_id"], row["idx"], body_of(json.loads(row["body"])))
        found.pieces.setdefault(row["message_id"], {})[piece.id] = piece
    found.checks.extend(
        _checks(asked.rows("session_id, attempt_id, name, kind, passed", "check_result"))
    )
    argv = asked.connection.execute(
        "SELECT argv FROM run JOIN session USING (run_id) WHERE session_id = ?", [asked.session_id]
    ).fetchone()
    found.argv = tuple(map(str, json.loads(argv[0]))) if argv and argv[0] else ()
    return found


def _checks(rows: Iterable[dict[str, Json]]) -> Iterator[records.CheckResult]:
    for row in rows:
        yield records.CheckResult(**row)


def _object(text: str | None) -> JsonObject:
    value = json.loads(text) if text else {}
    if not isinstance(value, dict):
        raise StorageError(f"{text[:80] if text else text!r} is not a JSON object")
    return value
