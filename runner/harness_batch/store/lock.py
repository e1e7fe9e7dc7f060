"""A lock between processes: flock on a file of its own; the kernel frees a dead holder's."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from harness_batch.errors import StorageError

WAIT_SECONDS: Final = 60.0
"""How long a lock is waited for."""
_POLL_SECONDS: Final = 0.02


@contextmanager
def held(
    path: Path, kind: Literal["exclusive", "shared"], *, wait_seconds: float = WAIT_SECONDS
) -> Iterator[None]:
    """Holds the lock while the block runs. Blocks the thread; not for the thread of trio.

    Raises: StorageError when others hold it until the deadline, or the file cannot be made.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StorageError(f"cannot open the lock {path}: {error.strerror}") from error
    try:
        deadline = time.monotonic() + wait_seconds
        while not try_lock(descriptor, kind):
            if time.monotonic() >= deadline:
                raise StorageError(f"{path} is locked by another process for {wait_seconds:g} s")
            threading.Event().wait(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, kind: Literal["exclusive", "shared"]) -> bool:
    """Whether the lock is held now; never waits."""
    operation = fcntl.LOCK_EX if kind == "exclusive" else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
