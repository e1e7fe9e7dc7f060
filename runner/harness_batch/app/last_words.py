"""How a run's journal ends, however the run ended: no attempt, session or run stays open in it.

For a run that went well there is nothing to add but its own end. For one that was cut off, by a
signal, a full disk or a bug of ours, all that was under way gets the end that is true of it.
"""

from collections.abc import Callable, Iterable

from attrs import evolve, frozen

from harness_batch.app.resume import Earlier
from harness_batch.engine.log import Log, timestamp
from harness_batch.errors import HarnessError, StorageError, cause_of
from harness_batch.events import JobUpdated, SessionFinished, SessionUpdated
from harness_batch.plan.item import Item
from harness_batch.records import Attempt, AttemptErrorKind, Session, Status


@frozen(kw_only=True)
class End:
    """What became of a session that did not end by itself."""

    status: Status
    reason: str
    detail: str
    error_kind: AttemptErrorKind | None = None
    at: str | None = None
    """When it ended; None: now."""


KILLED = End(
    status="errored",
    reason="killed",
    detail="the runner was killed before the session ended",
    error_kind="infra",
)
INTERRUPTED = End(status="cancelled", reason="interrupted", detail="interrupted by a signal")


def end_of(trouble: BaseException | None, *, signalled: bool) -> End:
    """The end that an error of the run (None: there was none) gives its open sessions."""
    match None if trouble is None else cause_of(trouble):
        case StorageError() as error:
            return End(
                status="errored", reason="storage", detail=str(error)[:500], error_kind="infra"
            )
        case _ if signalled:
            return INTERRUPTED
        case HarnessError() as error:
            return End(status="errored", reason="host", detail=str(error)[:500], error_kind="infra")
        case _:
            detail = "a bug in the runner ended the run"
            return End(status="errored", reason="internal", detail=detail, error_kind="infra")


def close_attempts(known: Earlier, log: Log, end: End) -> None:
    """End the attempts that are open. Raises: StorageError."""
    for attempt in tuple(known.open_attempts.values()):
        log.append(SessionFinished(_ended(attempt, end)), attempt.session_id)


def close_sessions(known: Earlier, log: Log, end: End, spare: Iterable[str] = ()) -> None:
    """End the sessions whose attempts ended, and those that have none. `spare`: item keys.

    Raises: StorageError.
    """
    spared = frozenset(spare)
    for key, session in tuple(known.sessions.items()):
        if key not in spared and (session.status is None or key in known.unannounced):
            closed = session if session.status is not None else _closed(session, end)
            log.append(SessionUpdated(closed), closed.session_id)


def close_children(known: Earlier, log: Log, end: End) -> None:
    """End the child sessions and background jobs that are open. Raises: StorageError."""
    for session in tuple(known.children.values()):
        closed = session if session.status is not None else _closed(session, end)
        log.append(SessionUpdated(closed), closed.session_id)
    for job in tuple(known.jobs.values()):
        closed_job = evolve(job, state="cancelled", finished_at=end.at or timestamp())
        log.append(JobUpdated(closed_job), job.session_id)


def skip_rest(
    known: Earlier, items: Iterable[Item], skip: Callable[[Item, str], Session], reason: str
) -> None:
    """Record the items that never got a session. Raises: StorageError."""
    for item in items:
        if item.key not in known.created:
            skip(item, reason)


def _ended(attempt: Attempt, end: End) -> Attempt:
    return evolve(
        attempt,
        status=end.status,
        reason=end.reason,
        detail=end.detail,
        error_kind=end.error_kind,
        retryable=True,
        finished_at=end.at or timestamp(),
    )


def _closed(session: Session, end: End) -> Session:
    return evolve(
        session,
        status=end.status,
        reason=end.reason,
        detail=end.detail,
        finished_at=end.at or timestamp(),
    )
