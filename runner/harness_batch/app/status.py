"""How far a run is: `status.json`, replaced while the run goes on, for people and scripts."""

from collections import Counter

import trio
from attrs import define, field

from harness_batch.events import (
    Event,
    ModelCallClosed,
    RunFinished,
    SessionCreated,
    SessionUpdated,
)
from harness_batch.messages import JsonObject
from harness_batch.store.folder import RunFolder

INTERVAL_S = 1.0


@define
class Status:
    """Counts of one run, kept up to date by the journal."""

    run_id: str
    planned: int
    _running: dict[str, str] = field(factory=dict)
    _ended: Counter[str] = field(factory=Counter)
    _calls: int = 0
    _exit_code: int | None = None

    def take(self, event: Event) -> None:
        """One more event of the journal."""
        match event.payload:
            case SessionCreated(session=session) if session.depth == 0:
                self._running[session.session_id] = session.item_key
            case SessionUpdated(session=session) if session.status and session.depth == 0:
                self._running.pop(session.session_id, None)
                self._ended[session.status] += 1
            case ModelCallClosed():
                self._calls += 1
            case RunFinished(run=run):
                self._exit_code = run.exit_code
            case _:
                pass

    def as_json(self) -> JsonObject:
        """What the file holds."""
        return {
            "run_id": self.run_id,
            "planned": self.planned,
            "running": sorted(self._running.values()),
            "ended": dict(self._ended),
            "model_calls": self._calls,
            "exit_code": self._exit_code,
        }

    async def keep_writing(self, folder: RunFolder) -> None:
        """Replace the file when something changed, at most once a second, until cancelled.

        Raises: StorageError.
        """
        written: JsonObject | None = None
        while True:
            now = self.as_json()
            if now != written:
                await trio.to_thread.run_sync(folder.write_status, now)
                written = now
            await trio.sleep(INTERVAL_S)
