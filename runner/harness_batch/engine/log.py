"""Writing down what one attempt does: the engine's seam to the journal."""

from datetime import UTC, datetime
from typing import Protocol

from attrs import frozen

from harness_batch.events import Notice, Payload


class Log(Protocol):
    """Takes every event of the run in order; `append` has written it when it returns."""

    def append(self, payload: Payload, session_id: str | None) -> None:
        """Write the event. Raises: StorageError."""
        ...

    async def sync(self) -> None:
        """Wait until all that was appended has reached the disk. Raises: StorageError."""
        ...


def timestamp() -> str:
    """The time of day: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@frozen
class AttemptLog:
    """The log with the ids of one attempt filled in."""

    log: Log
    session_id: str
    attempt_id: str

    def emit(self, payload: Payload) -> None:
        """Write an event of this session."""
        self.log.append(payload, self.session_id)

    def notice(self, text: str) -> None:
        """Tell people something they should know about this session."""
        self.emit(Notice("warning", text))
