"""What an earlier try of the same run left, read from its journal alone."""

from decimal import Decimal
from pathlib import Path
from typing import Literal

from attrs import Factory, define, evolve, frozen

from harness_batch.events import (
    Event,
    ModelCallClosed,
    ModelCallOpened,
    RunStarted,
    SessionCreated,
    SessionFinished,
    SessionStarted,
    SessionUpdated,
)
from harness_batch.plan.item import Item
from harness_batch.records import Attempt, Run, Session
from harness_batch.store.replay import read_events

ON_MERIT = ("passed", "failed")
"""Ends that stand; everything else is run again."""
RUN_LEVEL = ("max_cost", "max_time", "max_failures", "not_admitted")
"""Reasons of a stop of the run: not on merit, whatever the status."""


@define
class Earlier:
    """The journal read to its end."""

    run: Run | None = None
    sessions: dict[str, Session] = Factory(dict)
    """Newest record by item key; top level only."""
    open_attempts: dict[str, Attempt] = Factory(dict)
    """Attempts that never ended, by session id."""
    attempts: dict[str, int] = Factory(dict)
    """How many attempts each session began."""
    spent: Decimal = Decimal(0)
    """US dollars of all calls; one without an end counts at its ceiling."""
    _reserved: dict[str, Decimal] = Factory(dict)

    def take(self, event: Event) -> None:
        """One more event."""
        match event.payload:
            case RunStarted(run=run):
                self.run = run
            case SessionCreated(session=session) | SessionUpdated(session=session):
                if session.depth == 0:
                    self.sessions[session.item_key] = session
            case SessionStarted(attempt=attempt):
                self.open_attempts[attempt.session_id] = attempt
                self.attempts[attempt.session_id] = attempt.n
            case SessionFinished(attempt=attempt):
                self.open_attempts.pop(attempt.session_id, None)
            case ModelCallOpened(call=call, reserved_usd=reserved):
                self._reserved[call.model_call_id] = Decimal(reserved or 0)
                self.spent += self._reserved[call.model_call_id]
            case ModelCallClosed(call=call):
                self._close(call.model_call_id, call.cost_usd, call.error_kind)
            case _:
                pass

    def _close(self, call_id: str, cost: Decimal | None, error_kind: str | None) -> None:
        reserved = self._reserved.pop(call_id, Decimal(0))
        if cost is not None:
            self.spent += cost - reserved
        elif error_kind not in (None, "cancelled"):
            self.spent -= reserved


@frozen
class Reuse:
    """What of a plan need not run again, and what goes on."""

    kept: tuple[Session, ...] = ()
    """Sessions that stand; they count for the exit code."""
    again: tuple[Item, ...] = ()
    earlier: dict[str, Session] = Factory(dict)
    """Sessions that go on as a new attempt, by item key."""


def read_earlier(journal: Path) -> Earlier:
    """Raises: StorageError when the journal is broken in the middle."""
    earlier = Earlier()
    for event in read_events(journal):
        earlier.take(event)
    return earlier


def reusable(
    items: tuple[Item, ...], earlier: Earlier, rerun: Literal["failed", "errored"] | None
) -> Reuse:
    """Keep what ended on merit with the same digest; the rest is run, as a next attempt. Pure."""
    kept: list[Session] = []
    again: list[Item] = []
    going_on: dict[str, Session] = {}
    for item in items:
        session = earlier.sessions.get(item.key)
        same = session is not None and session.item_digest == item.digest
        if session is not None and same and _stands(session, rerun):
            kept.append(session)
            continue
        again.append(item)
        if session is not None and same:
            begun = earlier.attempts.get(session.session_id, 0)
            going_on[item.key] = evolve(session, attempts=begun)
    return Reuse(tuple(kept), tuple(again), going_on)


def _stands(session: Session, rerun: str | None) -> bool:
    if rerun == "failed" and session.status == "failed":
        return False
    return session.status in ON_MERIT and session.reason not in RUN_LEVEL
