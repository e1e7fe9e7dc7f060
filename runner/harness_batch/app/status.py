"""`status.json`: how far a run is, for whoever looks at its folder from outside."""

import os
from collections import Counter
from contextlib import suppress
from typing import Final

import trio

from harness_batch.app.resume import Earlier
from harness_batch.errors import StorageError
from harness_batch.messages import JsonObject
from harness_batch.store.folder import RunFolder

EVERY_S: Final = 1.0


async def keep_status(folder: RunFolder, known: Earlier, total: int) -> None:
    """Replace the file whenever something changed, once a second at most, until cancelled."""
    before: JsonObject = {}
    try:
        while True:
            before = _told(folder, known, total, before)
            await trio.sleep(EVERY_S)
    finally:
        _told(folder, known, total, before)


def _told(folder: RunFolder, known: Earlier, total: int, before: JsonObject) -> JsonObject:
    status = _status(known, total)
    if status != before:
        # A status that cannot be written must not end the run; the journal tells of a full disk.
        with suppress(StorageError):
            folder.write_status(status)
    return status


def _status(known: Earlier, total: int) -> JsonObject:
    sessions = known.sessions.values()
    ended = Counter(session.status for session in sessions if session.status is not None)
    run = known.run
    return {
        "run_id": run.run_id if run else None,
        "pid": os.getpid(),
        "started_at": run.started_at if run else None,
        "finished_at": run.finished_at if run else None,
        "exit_code": run.exit_code if run else None,
        "items": total,
        "running": sorted(session.item_key for session in sessions if session.status is None),
        "ended": dict(sorted(ended.items())),
        "spent_usd": f"{known.spent:f}",
    }
