"""Streamed text on its way: at once to whoever watches, in slices of 50 ms or 2 KB to the journal.

A crash loses one slice at most. A secret that was cut in two by the stream is held back until it is
whole, so that it can be masked.
"""

from collections.abc import Callable
from typing import Final

import trio
from attrs import define, field

from harness_batch.events import Event, PartDelta
from harness_batch.store.bus import EventBus
from harness_batch.store.journal import Journal
from harness_batch.store.masking import Mask

SLICE_SECONDS: Final = 0.05
SLICE_CHARACTERS: Final = 2048
UNJOURNALED: Final = 0
"""`seq` of a delta on the bus: it has no place in the journal yet."""


@define(kw_only=True)
class _Open:
    """A part that is streaming: what waits for the journal, and what may become a secret."""

    session_id: str
    message_id: str
    since: float
    pieces: list[str] = field(factory=list)
    size: int = 0
    held: str = ""


class DeltaSlices:
    """Deltas of all parts of a run. `clock` gives seconds; any zero."""

    def __init__(
        self,
        journal: Journal,
        bus: EventBus,
        *,
        mask: Mask | None = None,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        self._journal = journal
        self._bus = bus
        self._mask = mask or Mask(())
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._waiting = trio.Event()

    def add(self, delta: PartDelta, session_id: str) -> None:
        """Publishes the delta; journals a slice when one is full or old enough.

        Raises: StorageError as Journal.append.
        """
        part = self._open.get(delta.part_id)
        if part is None:
            part = _Open(session_id=session_id, message_id=delta.message_id, since=self._clock())
            self._open[delta.part_id] = part
        text, part.held = self._mask.split(part.held + delta.delta)
        self._take(delta.part_id, part, text)
        if part.size >= SLICE_CHARACTERS or self._clock() - part.since >= SLICE_SECONDS:
            self._write(delta.part_id, part)
        self._waiting.set()

    def finish(self, part_id: str) -> None:
        """Journals the rest of a part. To be called before its PartUpdated is appended."""
        part = self._open.pop(part_id, None)
        if part is not None:
            if part.held:
                self._take(part_id, part, self._mask(part.held))
            self._write(part_id, part)

    def flush_due(self) -> None:
        """Journals the slices that are old enough."""
        for part_id, part in self._open.items():
            if part.pieces and self._clock() - part.since >= SLICE_SECONDS:
                self._write(part_id, part)

    async def keep_flushing(self) -> None:
        """For a task of the run: no slice grows older than it should while a stream pauses."""
        while True:
            await self._waiting.wait()
            self._waiting = trio.Event()
            await trio.sleep(SLICE_SECONDS)
            self.flush_due()
            if any(part.pieces for part in self._open.values()):
                self._waiting.set()

    def _take(self, part_id: str, part: _Open, text: str) -> None:
        if not text:
            return
        if not part.pieces:
            part.since = self._clock()
        part.pieces.append(text)
        part.size += len(text)
        journal = self._journal
        payload = PartDelta(part_id, part.message_id, text)
        now = journal.now()
        self._bus.publish(Event(journal.run_id, part.session_id, UNJOURNALED, now, payload))

    def _write(self, part_id: str, part: _Open) -> None:
        if not part.pieces:
            return
        text = "".join(part.pieces)
        part.pieces, part.size = [], 0
        self._journal.append(PartDelta(part_id, part.message_id, text), part.session_id)
