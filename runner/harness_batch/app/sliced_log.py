"""The log that the engine writes to: the journal for all that happens, slices for streamed text."""

from attrs import frozen

from harness_batch.events import PartDelta, PartUpdated, Payload
from harness_batch.store.deltas import DeltaSlices
from harness_batch.store.journal import Journal


@frozen
class SlicedLog:
    """The engine's log: everything to the journal at once, deltas in slices."""

    journal: Journal
    deltas: DeltaSlices

    def append(self, payload: Payload, session_id: str | None) -> None:
        """Write the event; a part's slices come before its update. Raises: StorageError."""
        match payload:
            case PartDelta() if session_id is not None:
                self.deltas.add(payload, session_id)
                return
            case PartUpdated(part=part):
                self.deltas.finish(part.id)
            case _:
                pass
        self.journal.append(payload, session_id)

    async def sync(self) -> None:
        """Wait for the disk. Raises: StorageError."""
        await self.journal.sync()
