"""The one place that asks the database: a finished run's `report_*` views become records.

The file is opened read-only, without extensions and without access to anything else, and closed
before a record is returned. The views are the whole contract between the runner and its reports;
the questions stand in `sql/`, one file each.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import duckdb
from attrs import evolve

from harness_batch_reports.records import (
    Attempt,
    BatchReport,
    Check,
    ChildSession,
    Denial,
    Message,
    ModelCall,
    Notice,
    Part,
    Patch,
    ReportError,
    Row,
    Run,
    Session,
    SessionTranscript,
    ToolCall,
)
from harness_batch_reports.rows import Database, Values, record
from harness_batch_reports.trace_records import Trace, TraceCall, TraceSession, TraceTool
from harness_batch_reports.usage import ModelUsage, Spend, ToolUsage, Usage

Kind = TypeVar("Kind")
TOGETHER = 100
"""Sessions whose transcripts are in memory at once."""
ATTEMPT_FILES = ("answer.md", "answer.json", "change.patch", "transcript.md")
"""What an attempt's folder may hold for a reader of the report."""


def read_run(db: Path, run_id: str | None = None) -> BatchReport:
    """The run `run_id` of the database, else its newest.

    The items' files (`ATTEMPT_FILES`) are looked for beside the database: write them first.

    Raises: ReportError when there is no such file, database or run.
    """
    with _opened(db) as database:
        runs = database.records("run", Run, {"run_id": run_id})
        if not runs:
            raise ReportError(_no_such_run(database, run_id))
        run = {"run_id": runs[0].run_id}
        sessions = _sessions(database, {**run, "session_id": None})
        denials = database.records("denials", Denial, run)
        notices = database.records("notices", Notice, run)
    return BatchReport(
        run=runs[0],
        sessions=sessions,
        denials=denials,
        notices=notices,
        folder=db.resolve().parent,
    )


def with_files(report: BatchReport) -> BatchReport:
    """The report with the items' files as they lie there now."""
    folder = report.folder
    if folder is None:
        return report
    sessions = (
        evolve(session, files=tuple(_files(session, folder))) for session in report.sessions
    )
    return evolve(report, sessions=tuple(sessions))


def read_session(db: Path, session_id: str) -> SessionTranscript:
    """All that was said and done in one session (also a child session), over all attempts.

    Raises: ReportError when there is no such file, database or session.
    """
    with _opened(db) as database:
        heads = _sessions(database, {"run_id": None, "session_id": session_id})
        (told,) = _transcripts(database, {session_id: heads[0] if heads else None})
        children = database.records("child", ChildSession, {"session_id": session_id})
    if not (told.session or told.messages):
        raise ReportError(f"{db} holds no session {session_id}")
    return evolve(told, child=children[0] if children else None)


def read_transcripts(
    db: Path, sessions: Sequence[Session] | Mapping[str, None]
) -> Iterator[SessionTranscript]:
    """As `read_session`, for many: one connection and a few questions for `TOGETHER` of them.

    Of child sessions, which have no line in the report, the ids are given.
    """
    heads: dict[str, Session | None] = (
        dict(sessions)
        if isinstance(sessions, Mapping)
        else {session.session_id: session for session in sessions}
    )
    ids = list(heads)
    for start in range(0, len(ids), TOGETHER):
        some = {key: heads[key] for key in ids[start : start + TOGETHER]}
        with _opened(db) as database:
            told = _transcripts(database, some)
        yield from told


def read_usage(db: Path, run_id: str) -> Usage:
    """What the run used, by model, by tool and over time. Raises: ReportError."""
    run = {"run_id": run_id}
    with _opened(db) as database:
        return Usage(
            models=database.records("usage_models", ModelUsage, run),
            tools=database.records("usage_tools", ToolUsage, run),
            spend=database.records("usage_spend", Spend, run),
        )


def read_children(db: Path, run_id: str) -> tuple[ChildSession, ...]:
    """The child sessions of the run, in order of their birth. Raises: ReportError."""
    with _opened(db) as database:
        return database.records("children", ChildSession, {"run_id": run_id})


def _transcripts(
    database: Database, sessions: Mapping[str, Session | None]
) -> tuple[SessionTranscript, ...]:
    which = {"session_ids": list(sessions)}
    messages = _by_session(database, "messages", Message, which)
    parts = _by_session(database, "parts", Part, which)
    model_calls = _by_session(database, "model_calls", ModelCall, which)
    tool_calls = _by_session(database, "tool_calls", ToolCall, which)
    return tuple(
        SessionTranscript(
            session_id=key,
            session=session,
            messages=_with_parts(messages.get(key, ()), parts.get(key, ())),
            model_calls=tuple(model_calls.get(key, ())),
            tool_calls=tuple(tool_calls.get(key, ())),
        )
        for key, session in sessions.items()
    )


def _by_session(
    database: Database, question: str, kind: type[Kind], which: Values
) -> dict[str, list[Kind]]:
    found: dict[str, list[Kind]] = {}
    for row in database.rows(question, which):
        found.setdefault(row["session_id"], []).append(record(kind, row))
    return found


def read_trace(db: Path, run_id: str | None = None) -> Trace:
    """What the run `run_id`, else the newest, did when: for the spans of a trace.

    Raises: ReportError when there is no such file, database or run.
    """
    with _opened(db) as database:
        runs = database.records("run", Run, {"run_id": run_id})
        if not runs:
            raise ReportError(_no_such_run(database, run_id))
        which = {"run_id": runs[0].run_id}
        return Trace(
            run=runs[0],
            sessions=database.records("trace_sessions", TraceSession, which),
            calls=database.records("trace_calls", TraceCall, which),
            tools=database.records("trace_tools", TraceTool, which),
        )


@contextmanager
def _opened(db: Path) -> Iterator[Database]:
    if not db.is_file():
        raise ReportError(f"{db}: no such database file")
    try:
        connection = duckdb.connect(
            str(db),
            read_only=True,
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "enable_external_access": "false",
                "lock_configuration": "true",
            },
        )
    except duckdb.Error as fault:
        raise ReportError(_why_closed(db, fault)) from fault
    try:
        yield Database(db, connection)
    finally:
        connection.close()


def _why_closed(db: Path, fault: duckdb.Error) -> str:
    said = str(fault).partition("\n")[0]
    if "not a valid DuckDB database" in said:
        return f"{db} is not a DuckDB database"
    if "lock" in said.lower() or "different configuration" in said:
        return f"{db} is being written; wait until its run has ended"
    return f"{db} cannot be opened: {said}"


def _no_such_run(database: Database, run_id: str | None) -> str:
    known = [row["run_id"] for row in database.rows("runs", {})]
    if not known:
        return f"{database.path} holds no run yet"
    return f"{database.path} holds no run {run_id}; it has {', '.join(known)}"


def _sessions(database: Database, which: dict[str, str | None]) -> tuple[Session, ...]:
    checks: dict[str, list[Check]] = {}
    for check in database.records("checks", Check, which):
        checks.setdefault(check.session_id, []).append(check)
    attempts: dict[str, list[Attempt]] = {}
    for attempt in database.records("attempts", Attempt, which):
        attempts.setdefault(attempt.session_id, []).append(attempt)
    folder = database.path.resolve().parent
    return tuple(
        evolve(
            _session(row, folder),
            checks=tuple(checks.get(row["session_id"], ())),
            earlier=tuple(attempts.get(row["session_id"], ())[:-1]),
        )
        for row in database.rows("sessions", which)
    )


def _session(row: Row, folder: Path) -> Session:
    session = record(Session, row | {"patch": None, "checks": (), "earlier": (), "files": ()})
    return evolve(session, patch=_patch(row), files=tuple(_files(session, folder)))


def _patch(row: Row) -> Patch | None:
    """None when the row has no patch. An empty one (0 files) says that nothing was changed."""
    if row["patch_files"] is None:
        return None
    counts = {f"patch_{name}": row[f"patch_{name}"] or 0 for name in ("added", "removed", "bytes")}
    named = {**row, **counts}
    return record(
        Patch,
        {key.removeprefix("patch_"): named[key] for key in named if key.startswith("patch_")}
        | {"patch_id": row["patch_id"]},
    )


def _files(session: Session, folder: Path) -> Iterator[str]:
    if session.folder is None or session.attempt_n is None:
        return
    attempt = f"items/{session.folder}/attempt-{session.attempt_n}"
    for name in ATTEMPT_FILES:
        if (folder / attempt / name).is_file():
            yield f"{attempt}/{name}"


def _with_parts(messages: Sequence[Message], parts: Sequence[Part]) -> tuple[Message, ...]:
    by_message: dict[str, list[Part]] = {}
    for part in parts:
        by_message.setdefault(part.message_id, []).append(part)
    return tuple(
        evolve(message, parts=tuple(by_message.get(message.message_id, ()))) for message in messages
    )
