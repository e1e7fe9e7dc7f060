"""Whole files or none of them: a reader sees the old content or the new, whenever we die."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness_batch.errors import StorageError


def write_bytes(path: Path, data: bytes) -> None:
    """The whole file or none of it, on the disk when this returns. Raises: StorageError."""
    with new_file(path) as descriptor:
        write_all(descriptor, data)
        os.fsync(descriptor)
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"cannot sync {path.parent}: {error.strerror}") from error


def write_copy(path: Path, data: bytes) -> None:
    """As `write_bytes`, to a place that the user named: it stays what it is.

    A link leads to the file that is replaced; a device or a pipe (`/dev/stderr`, `/dev/null`) is
    written into, since putting a file in its place would take it away from the whole machine.

    Raises: StorageError.
    """
    write_pieces(path, (data,))


def write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """As `write_copy`, piece by piece. Raises: StorageError, and what the pieces raise."""
    try:
        place = path.resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.is_file():
            with new_file(place) as descriptor:
                for piece in pieces:
                    write_all(descriptor, piece)
                os.fsync(descriptor)
            sync_folder(place.parent)
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            for piece in pieces:
                write_all(descriptor, piece)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    except RuntimeError as error:  # what `resolve` says of links in a circle
        raise StorageError(f"cannot write {path}: {error}") from error


def write_text(path: Path, text: str) -> None:
    """As `write_bytes`, UTF-8; a lone surrogate becomes `?`."""
    write_bytes(path, text.encode(errors="replace"))


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name beside `path` for a writer that wants a name; the file takes the path's place.

    A link leads to the file that is replaced; a folder, a device or a pipe is never replaced.

    Raises: StorageError.
    """
    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            raise StorageError(f"cannot write {path}: it is there, and no regular file")
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    except RuntimeError as error:  # what `resolve` says of links in a circle
        raise StorageError(f"cannot write {path}: {error}") from error
    new = place.with_name(f".{place.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield new
        new.replace(place)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):  # a name that is too long cannot be asked for either
            new.unlink(missing_ok=True)


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """A descriptor of a new file that takes the path's place when the block ends well."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        descriptor = os.open(
            new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
        )
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        new.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """All of the data, however often the OS takes only some. Raises: OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder survive the machine. Raises: OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
