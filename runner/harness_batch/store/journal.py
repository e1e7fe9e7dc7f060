"""The journal: one line per event, in the hands of the OS before `append` returns. The truth.

Everything else (database, reports, resume) is made from it. A killed process loses no acknowledged
event; `sync` makes them survive the machine too. A write that fails is loud, and after half a line
nothing more is written until `repair` has cut it off.
"""

import mmap
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Self

import trio

from harness_batch.codec import encode
from harness_batch.errors import StorageError
from harness_batch.events import Event, Payload
from harness_batch.store.disk import sync_folder
from harness_batch.store.masking import mapped
from harness_batch.store.replay import last_event

REMOVED_SUFFIX: Final = ".removed"
"""Bytes cut off the end of a journal are kept in a file with this name beside it."""

Follower = Callable[[Event], None]
"""Called with each event once it is written. Must return at once and must not raise."""


def utc_now() -> str:
    """ISO 8601, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _unmasked(text: str) -> str:
    return text


class Journal:
    """The one writer of a run's `events.jsonl`."""

    def __init__(
        self,
        path: Path,
        run_id: str,
        *,
        descriptor: int,
        last_seq: int,
        now: Callable[[], str],
        mask: Callable[[str], str],
    ) -> None:
        self.path = path
        self.run_id = run_id
        self.last_seq = last_seq
        """`seq` of the newest event that is written; 0 in a new journal."""
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self.now = now
        """The clock of `ts`."""
        self._mask = mask
        self._followers: tuple[Follower, ...] = ()
        self._torn: str | None = None
        self._unsure: str | None = None
        self._synced_seq = last_seq
        self._sync_over: trio.Event | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        run_id: str,
        *,
        now: Callable[[], str] = utc_now,
        mask: Callable[[str], str] = _unmasked,
    ) -> Self:
        """A new journal, or an old one that goes on: a torn end is cut off, `seq` continues.

        `mask` goes over every text that is written (masking.Mask).

        Raises: StorageError when the file cannot be opened, mended, or is another run's.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StorageError(f"cannot open the journal {path}: {error.strerror}") from error
        try:
            last_seq = _mend(path, descriptor, run_id)
            sync_folder(path.parent)
            return cls(path, run_id, descriptor=descriptor, last_seq=last_seq, now=now, mask=mask)
        except OSError as error:
            os.close(descriptor)
            raise StorageError(f"cannot mend the journal {path}: {error.strerror}") from error
        except StorageError:
            os.close(descriptor)
            raise

    def follow(self, follower: Follower) -> None:
        """The follower gets every event from now on, in order, without loss."""
        self._followers = (*self._followers, follower)

    def append(self, payload: Payload, session_id: str | None) -> Event:
        """Writes the event and hands it to the followers; masked texts are masked in it too.

        Raises: StorageError when the event is not, or not surely, written.
        """
        if refusal := self._torn or self._unsure:
            raise StorageError(f"the journal {self.path} takes no more events: {refusal}")
        event = Event(self.run_id, session_id, self.last_seq + 1, self.now(), payload)
        line = encode(event)
        if self._mask is not _unmasked:
            text = line.decode()
            if self._mask(text) != text:
                event = Event(
                    event.run_id, session_id, event.seq, event.ts, mapped(payload, self._mask)
                )
                line = encode(event)
        self._write(line + b"\n")
        self.last_seq = event.seq
        for follower in self._followers:
            follower(event)
        return event

    def repair(self) -> None:
        """Cuts off the half line of a failed write; then events are taken again.

        Raises: StorageError when the file cannot be cut.
        """
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError as error:
            raise StorageError(f"cannot mend the journal {self.path}: {error.strerror}") from error
        self._torn = None

    async def sync(self) -> None:
        """What was appended before the call is on the disk after it; callers share one fdatasync.

        Raises: StorageError when the disk refuses.
        """
        wanted = self.last_seq
        while self._synced_seq < wanted:
            if self._unsure is not None:
                raise StorageError(f"the journal {self.path} is not safe: {self._unsure}")
            if self._sync_over is not None:
                await self._sync_over.wait()
            else:
                await self._sync_once()

    def close(self) -> None:
        """No more events. Closing twice is nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._unsure = "it is closed"

    async def _sync_once(self) -> None:
        self._sync_over = trio.Event()
        covered = self.last_seq
        try:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(partial(os.fdatasync, self._descriptor))
            self._synced_seq = max(self._synced_seq, covered)
        except OSError as error:
            # After a failed sync the kernel forgets which pages were dirty: trust nothing more.
            self._unsure = f"syncing it failed: {error.strerror}"
            raise StorageError(f"cannot sync the journal {self.path}: {error.strerror}") from error
        finally:
            self._sync_over.set()
            self._sync_over = None

    def _write(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:] if written else line)
        except OSError as error:
            if written:
                self._torn = f"a line was cut short: {error.strerror}"
            raise StorageError(
                f"cannot write to the journal {self.path}: {error.strerror}"
            ) from error
        self._size += len(line)


# ---- mending the end of a journal


def _mend(path: Path, descriptor: int, run_id: str) -> int:
    """Cuts everything after the last whole event; returns its `seq`."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return 0
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as data:
        end, found = last_event(data)
        removed = data[end:]
    owner, seq = found or (run_id, 0)
    if owner != run_id:
        raise StorageError(f"the journal {path} belongs to {owner}, not to {run_id}")
    if removed:
        _keep_aside(path, removed)
        os.ftruncate(descriptor, end)
        os.fsync(descriptor)
    return seq


def _keep_aside(path: Path, removed: bytes) -> None:
    if removed.strip(b"\0"):
        with path.with_name(path.name + REMOVED_SUFFIX).open("ab") as aside:
            aside.write(removed.rstrip(b"\0") + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
