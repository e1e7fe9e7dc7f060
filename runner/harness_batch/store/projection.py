"""The database as the journal tells it, live: one writer, fed by the journal, never in its way.

The journal is the truth and the database follows: when the database fails the run goes on, the
error is kept and reported, and `ensure` makes the database again from the journal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from attrs import frozen

from harness_batch.errors import StorageError
from harness_batch.events import Event
from harness_batch.store.replay import last_envelope, read_events
from harness_batch.store.rows import Rows

if TYPE_CHECKING:
    from harness_batch.store.database import Database

LINGER_SECONDS: Final = 2.0
"""How long rows are gathered: nobody else can read a database that is written, and each table of a
batch costs 8 ms beside its rows."""
BATCH_EVENTS: Final = 20_000
"""The most events in one transaction."""


@frozen
class Beginning:
    """The beginning of a journal that grows."""

    journal: Path
    last_seq: int

    def events(self) -> Iterator[Event]:
        """Up to and with `last_seq`. Raises: StorageError."""
        return takewhile(lambda event: event.seq <= self.last_seq, read_events(self.journal))


class Projection:
    """A task that writes a run's database. `take` is a follower of the journal."""

    def __init__(
        self,
        path: Path,
        *,
        failed: Callable[[StorageError], None],
        earlier: Beginning | None = None,
        linger_seconds: float = LINGER_SECONDS,
    ) -> None:
        """`failed` is called once, from the task, when the database cannot be written.

        `earlier` is what the journal of a resumed run holds already: a killed runner's database
        lacks rows, so it is made anew before it goes on.
        """
        self._path = path
        self._earlier = earlier
        self._failed = failed
        self._linger = linger_seconds
        self._rows = Rows()
        self._database: Database | None = None
        self._waiting: list[Event] = []
        self._news = trio.Event()
        self._hurry = trio.Event()
        self._closed = False
        self.error: StorageError | None = None
        """Why the database does not follow any more; None while it does."""

    def take(self, event: Event) -> None:
        """One more event; never waits. After a failure events are not kept."""
        if self.error is None:
            self._waiting.append(event)
            self._news.set()
            if len(self._waiting) >= BATCH_EVENTS:
                self._hurry.set()

    def close(self) -> None:
        """No more events come: `run` writes what waits, completes the database and returns."""
        self._closed = True
        self._news.set()
        self._hurry.set()

    async def run(self) -> None:
        """Writes until closed; a cancelled task, too, writes all that it was given.

        Events may come before: opening the database overlaps with the start of the run.
        """
        try:
            while not self._closed:
                self._news, self._hurry = trio.Event(), trio.Event()
                await self._write()
                await self._news.wait()
                with trio.move_on_after(self._linger):
                    await self._hurry.wait()
        finally:
            with trio.CancelScope(shield=True):
                await self._write()
                await self._in_thread(self._complete)

    async def _write(self) -> None:
        """Writes what waits; opens the database when it is not open yet."""
        with trio.CancelScope(shield=True):
            events, self._waiting = self._waiting, []
            await self._in_thread(lambda: self._put(events))

    async def _in_thread(self, work: Callable[[], None]) -> None:
        if self.error is not None:
            return
        try:
            await trio.to_thread.run_sync(work)
        except StorageError as error:
            if self._database is not None:
                await trio.to_thread.run_sync(self._database.abandon)
            self.error = error
            self._waiting = []
            self._failed(error)

    # ---- in the worker thread, never two at once

    def _put(self, events: Sequence[Event]) -> None:
        if self._database is None:
            if self._earlier is not None:
                _discard(self._path)
            self._database = _open_database(self._path)
            if self._earlier is not None:
                _put_all(self._database, self._rows, self._earlier.events())
        _put(self._database, self._rows, events)

    def _complete(self) -> None:
        if self._database is not None:
            self._rows.finish()
            self._database.write(self._rows.drain())
            self._database.close(self._rows.reached)


def rebuild(journal: Path, database: Path) -> None:
    """Makes the database anew from the journal, beside the old one, and then in its place.

    Blocks: run it in a thread, while nobody in this process has the database open.

    Raises: StorageError when the journal is broken in the middle or the disk refuses.
    """
    new = database.with_name(f"{database.name}.{os.getpid()}.new")
    try:
        _discard(new)
        target = _open_database(new)
        rows = Rows()
        with target:
            _put_all(target, rows, read_events(journal))
            rows.finish()
            target.write(rows.drain())
            target.close(rows.reached)
        # The old file's log must not be replayed into the new file.
        _log_of(database).unlink(missing_ok=True)
        new.replace(database)
    except OSError as error:
        raise StorageError(f"cannot rebuild {database}: {error}") from error
    finally:
        _discard(new)


def ensure(journal: Path, database: Path) -> None:
    """Rebuilds the database unless it already goes up to the journal's last event.

    Raises: as `rebuild`.
    """
    if not agrees(journal, database):
        rebuild(journal, database)


def agrees(journal: Path, database: Path) -> bool:
    """Whether the database is whole and goes up to the journal's last event. Blocks."""
    if not database.is_file() or _log_of(database).exists():
        return False
    from harness_batch.store.database import reached  # noqa: PLC0415 - as _open_database

    last = last_envelope(journal)
    return last is not None and reached(database, last[0]) == last[1]


def _open_database(path: Path) -> Database:
    from harness_batch.store.database import Database  # noqa: PLC0415 - duckdb takes 100 ms: in the writer's thread, while the run starts

    return Database(path)


def _put(database: Database, rows: Rows, events: Sequence[Event]) -> None:
    for start in range(0, len(events), BATCH_EVENTS):
        for event in events[start : start + BATCH_EVENTS]:
            rows.take(event)
        database.write(rows.drain())


def _put_all(database: Database, rows: Rows, events: Iterable[Event]) -> None:
    waiting: list[Event] = []
    for event in events:
        waiting.append(event)
        if len(waiting) >= BATCH_EVENTS:
            _put(database, rows, waiting)
            waiting = []
    _put(database, rows, waiting)


def _log_of(database: Path) -> Path:
    return database.with_name(database.name + ".wal")


def _discard(database: Path) -> None:
    database.unlink(missing_ok=True)
    _log_of(database).unlink(missing_ok=True)
