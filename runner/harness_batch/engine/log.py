"""Writing down what one attempt does: the engine's seam to the journal."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from attrs import field, frozen

from harness_batch.events import Notice, Payload


class Log(Protocol):
    """Takes every event of the run in order; `append` has written it when it returns."""

    def append(self, payload: Payload, session_id: str | None) -> None:
        """Write the event. Raises: StorageError."""
        ...

    async def sync(self) -> None:
        """Wait until all that was appended has reached the disk. Raises: StorageError."""
        ...


def utc_now() -> datetime:
    """The time of day, in UTC."""
    return datetime.now(UTC)


@frozen
class AttemptLog:
    """The log with the ids of one attempt filled in."""

    log: Log
    session_id: str
    attempt_id: str
    clock: Callable[[], datetime] = field(default=utc_now)

    def emit(self, payload: Payload) -> None:
        """Write an event of this session."""
        self.log.append(payload, self.session_id)

    def notice(self, text: str) -> None:
        """Tell people something they should know about this session."""
        self.emit(Notice("warning", text))

    def now(self) -> str:
        """ISO 8601, UTC."""
        return self.clock().isoformat(timespec="milliseconds")
