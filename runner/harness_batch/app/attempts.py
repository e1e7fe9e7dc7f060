"""What sessions and child sessions share: an attempt begun or refused, and clearing up after it."""

from collections.abc import Callable, Iterable
from pathlib import Path

import trio
from attrs import evolve, frozen

from harness_batch.engine.log import Log, timestamp
from harness_batch.events import Notice, SessionFinished, SessionStarted
from harness_batch.ids import new_id
from harness_batch.models.protocol import Model
from harness_batch.records import Attempt, AttemptErrorKind, Session

Mask = Callable[[Path], tuple[str, ...]]
"""Takes secrets out of the files of a folder; words on what could not be looked at."""


@frozen
class Models:
    """The connections of one session; `small` may be `main`."""

    main: Model
    small: Model
    fallbacks: tuple[Model, ...] = ()

    async def aclose(self) -> None:
        """Close them all."""
        for model in {id(m): m for m in (self.main, self.small, *self.fallbacks)}.values():
            await model.aclose()


def next_attempt(session: Session) -> Attempt:
    """The record of the attempt after those that the session had."""
    return Attempt(
        attempt_id=new_id("att"),
        session_id=session.session_id,
        n=session.attempts + 1,
        started_at=timestamp(),
    )


def refused(
    attempt: Attempt, reason: str, detail: str, log: Log, kind: AttemptErrorKind = "infra"
) -> Attempt:
    """The attempt, ended and written down before anything was done. Raises: StorageError."""
    log.append(SessionStarted(attempt), attempt.session_id)
    ended = evolve(
        attempt,
        status="errored",
        reason=reason,
        detail=detail,
        error_kind=kind,
        wall_s=0.0,
        working_s=0.0,
        finished_at=timestamp(),
    )
    log.append(SessionFinished(ended), attempt.session_id)
    return ended


async def cleared_up(
    models: Models, outputs: Iterable[Path], mask: Mask, log: Log, session_id: str
) -> None:
    """Connections closed, secrets out of the outputs of all attempts; nothing interrupts it.

    Raises: StorageError.
    """
    with trio.CancelScope(shield=True):
        await models.aclose()
        for folder in outputs:
            for text in await trio.to_thread.run_sync(mask, folder):
                log.append(Notice("warning", text), session_id)
