"""What a run's events say of its sessions and its spend: of an earlier try, and of this one.

Read from the journal, nothing asked of the database; then kept up to date as a follower of it.
"""

from decimal import Decimal
from pathlib import Path
from typing import Literal

from attrs import Factory, define, evolve, frozen

from harness_batch.events import (
    Event,
    JobUpdated,
    ModelCallClosed,
    ModelCallOpened,
    RunFinished,
    RunStarted,
    SessionCreated,
    SessionFinished,
    SessionStarted,
    SessionUpdated,
)
from harness_batch.plan.item import Item
from harness_batch.records import Attempt, Job, Run, Session
from harness_batch.store.replay import read_events

ON_MERIT = ("passed", "failed")
"""Ends that stand; everything else is run again."""
RUN_LEVEL = ("max_cost", "max_time", "max_failures", "not_admitted")
"""Reasons of a stop of the run: not on merit, whatever the status."""


@define
class Earlier:
    """The journal read so far."""

    run: Run | None = None
    sessions: dict[str, Session] = Factory(dict)
    """Newest record by item key; top level only."""
    open_attempts: dict[str, Attempt] = Factory(dict)
    """Attempts that never ended, by session id."""
    attempts: dict[str, int] = Factory(dict)
    """How many attempts each session began."""
    unannounced: set[str] = Factory(set)
    """Item keys whose attempt has ended and whose session does not say so yet."""
    children: dict[str, Session] = Factory(dict)
    """Child sessions that have not ended, by id."""
    jobs: dict[str, Job] = Factory(dict)
    """Background jobs that have not ended, by id."""
    created: set[str] = Factory(set)
    """Item keys that got a session in this try, once the earlier ones were read."""
    spent: Decimal = Decimal(0)
    """US dollars of all calls; one without an end counts at its ceiling."""
    _reserved: dict[str, Decimal] = Factory(dict)
    _keys: dict[str, str] = Factory(dict)

    def take(self, event: Event) -> None:
        """One more event."""
        match event.payload:
            case RunStarted(run=run) | RunFinished(run=run):
                self.run = run
            case SessionCreated(session=session) | SessionUpdated(session=session):
                self._note(session)
            case JobUpdated(job=job):
                if job.state == "running":
                    self.jobs[job.job_id] = job
                else:
                    self.jobs.pop(job.job_id, None)
            case SessionStarted(attempt=attempt):
                self.open_attempts[attempt.session_id] = attempt
                self.attempts[attempt.session_id] = attempt.n
                self._goes_on(attempt)
            case SessionFinished(attempt=attempt):
                self.open_attempts.pop(attempt.session_id, None)
                self._ended(attempt)
            case ModelCallOpened(call=call, reserved_usd=reserved):
                self._reserved[call.model_call_id] = Decimal(reserved or 0)
                self.spent += self._reserved[call.model_call_id]
            case ModelCallClosed(call=call, settled_usd=settled):
                reserved_ = self._reserved.pop(call.model_call_id, Decimal(0))
                self.spent += (call.cost_usd or 0) if settled is None else Decimal(settled)
                self.spent -= reserved_
            case _:
                pass

    def _note(self, session: Session) -> None:
        if session.depth == 0:
            self._keys[session.session_id] = session.item_key
            self.sessions[session.item_key] = session
            self.created.add(session.item_key)
            self.unannounced.discard(session.item_key)
        elif session.status is None:
            self.children[session.session_id] = session
        else:
            self.children.pop(session.session_id, None)

    def _goes_on(self, attempt: Attempt) -> None:
        """A recipe's retry: what an earlier attempt came to is not the session's end."""
        key = self._keys.get(attempt.session_id)
        if key in self.unannounced:
            self.unannounced.discard(key)
            self.sessions[key] = evolve(
                self.sessions[key], status=None, reason=None, detail=None, finished_at=None
            )

    def _ended(self, attempt: Attempt) -> None:
        """The session ends as its last attempt did, also when we die before it says so."""
        key = self._keys.get(attempt.session_id)
        if key is not None:
            self.sessions[key] = ended_as(self.sessions[key], attempt)
            self.unannounced.add(key)
        elif attempt.session_id in self.children:
            child = self.children[attempt.session_id]
            self.children[attempt.session_id] = ended_as(child, attempt)


@frozen
class Reuse:
    """What of a plan need not run again, and what goes on."""

    kept: tuple[Session, ...] = ()
    """Sessions that stand; they count for the exit code."""
    again: tuple[Item, ...] = ()
    earlier: dict[str, Session] = Factory(dict)
    """Sessions that go on as a new attempt, by item key."""


def ended_as(session: Session, attempt: Attempt) -> Session:
    """The session with the outcome of its last attempt."""
    return evolve(
        session,
        status=attempt.status,
        reason=attempt.reason,
        detail=attempt.detail,
        attempts=attempt.n,
        finished_at=attempt.finished_at,
    )


def read_earlier(journal: Path) -> Earlier:
    """Raises: StorageError when the journal is broken in the middle."""
    earlier = Earlier()
    for event in read_events(journal):
        earlier.take(event)
    return earlier


def reusable(
    items: tuple[Item, ...], earlier: Earlier, rerun: Literal["failed", "errored"] | None
) -> Reuse:
    """Keep what ended on merit with the same digest; the rest is run, as a next attempt. Pure.

    An item whose digest changed goes on in its session too: one item is one test case of a run.
    """
    kept: list[Session] = []
    again: list[Item] = []
    going_on: dict[str, Session] = {}
    for item in items:
        session = earlier.sessions.get(item.key)
        if session is not None and session.item_digest == item.digest and _stands(session, rerun):
            between = session.status == "failed" and item.key in earlier.unannounced
            if not (between and item.recipe.retry is not None):  # cut off before the retry it had
                kept.append(session)
                continue
        again.append(item)
        if session is not None:
            begun = earlier.attempts.get(session.session_id, 0)
            going_on[item.key] = evolve(session, attempts=begun)
    return Reuse(tuple(kept), tuple(again), going_on)


def _stands(session: Session, rerun: str | None) -> bool:
    if rerun == "failed" and session.status == "failed":
        return False
    return session.status in ON_MERIT and session.reason not in RUN_LEVEL
