"""A journal read back, also while another process still writes it.

Only whole lines count: a cut last line was never acknowledged. A broken line before it is an error
and says where.
"""

import json
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from harness_batch.codec import decode
from harness_batch.errors import StorageError
from harness_batch.events import Event


def read_events(path: Path) -> Iterator[Event]:
    """The events of a journal in order.

    Raises: StorageError when the file cannot be read, or for a broken line that is not the last.
    """
    try:
        with path.open("rb") as file:
            yield from _events(path, _whole_lines(file))
    except OSError as error:
        raise StorageError(f"cannot read the journal {path}: {error.strerror}") from error


def first_envelope(path: Path) -> tuple[str, int] | None:
    """As `last_envelope`, of the first event."""
    try:
        with path.open("rb") as file:
            line = file.readline()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read the journal {path}: {error.strerror}") from error
    return envelope(line) if line.endswith(b"\n") else None


def last_envelope(path: Path) -> tuple[str, int] | None:
    """`run_id` and `seq` of a journal's last event; None when it has none or does not exist."""
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                _, found = last_event(data)
                return found
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read the journal {path}: {error.strerror}") from error


def last_event(data: mmap.mmap) -> tuple[int, tuple[str, int] | None]:
    """Where the last whole event of a journal ends (0 when there is none), and its envelope."""
    end = data.rfind(b"\n") + 1
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1) + 1
        found = envelope(data[start : end - 1])
        if found is not None:
            return end, found
        end = start
    return 0, None


def envelope(line: bytes) -> tuple[str, int] | None:
    """`run_id` and `seq` of an event of any version; None when the line is no event."""
    try:
        event = json.loads(line)
        return str(event["run_id"]), int(event["seq"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    for line in file:
        if line.endswith(b"\n"):
            yield line[:-1]


def _events(path: Path, lines: Iterator[bytes]) -> Iterator[Event]:
    """A line that is no event is an error only when another one follows it."""
    broken: StorageError | None = None
    for number, line in enumerate(lines, 1):
        if broken is not None:
            raise broken
        try:
            event = _decoded(path, number, line)
        except StorageError as error:
            if envelope(line) is not None:
                raise
            broken = error
            continue
        yield event


def _decoded(path: Path, number: int, line: bytes) -> Event:
    try:
        return decode(line)
    except StorageError as error:
        raise StorageError(f"{path}:{number}: {error}") from error
