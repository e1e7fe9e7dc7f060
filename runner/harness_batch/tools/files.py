"""The one place through which tools touch files: regular files only, by descriptor, never a link.

What goes wrong comes back as `Refused`. Everything here may block on the disk; callers run it in a
thread. Writing is a temporary file in the same folder and a rename, so a reader sees the old bytes
or the new ones; the mode bits stay, and other names of a hard link keep the old content.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from hashlib import blake2b
from itertools import islice

from attrs import frozen

from harness_batch.tools.beneath import folder_beneath, made_beneath, open_beneath
from harness_batch.tools.paths import Place, Refused, is_git_name, printable
from harness_batch.tools.protocol import SessionFiles

MAX_EDITABLE = 16 * 1024 * 1024
"""Bytes. Larger files are not edited in memory, and known by size and time instead of content."""
MAX_LISTED = 1000
"""Entries of a folder that are shown."""
_KINDS = {
    stat.S_IFIFO: "a FIFO (named pipe)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFDIR: "a folder",
}


@frozen
class Opened:
    """A regular file, open for reading; `descriptor` closes when the block ends."""

    descriptor: int
    size: int
    """Bytes."""
    mode: int
    """Permission bits."""
    links: int
    """Names the file has; more than one is a hard link."""
    fingerprint: str


@frozen
class Folder:
    """The path is a folder."""

    entries: tuple[str, ...]
    """Sorted names, folders with a final slash, `.git` left out."""
    total: int


@frozen
class Missing:
    """No such file; `near` are names that may have been meant."""

    near: tuple[str, ...]

    def refused(self, place: Place) -> Refused:
        """In words for the model."""
        meant = f" Did you mean: {', '.join(self.near)}?" if self.near else ""
        return Refused(f"{place.shown}: no such file.{meant}")


@frozen
class Content:
    """All bytes of a file and what must be kept of it."""

    data: bytes
    mode: int
    links: int
    fingerprint: str


@contextmanager
def opened(place: Place) -> Iterator[Opened | Folder | Missing | Refused]:
    """The file at `place` for reading, or what is there instead."""
    try:
        descriptor = open_beneath(place.base, place.parts)
    except OSError as error:
        yield _unopened(error, place)
        return
    try:
        found: Opened | Folder | Refused
        try:
            found = _looked_at(descriptor, place)
        except OSError as error:
            found = Refused(f"{place.shown} cannot be read: {error.strerror}.")
        yield found
    finally:
        os.close(descriptor)


def load(place: Place) -> Content | Folder | Missing | Refused:
    """The whole file, up to `MAX_EDITABLE`."""
    with opened(place) as found:
        if not isinstance(found, Opened):
            return found
        if found.size > MAX_EDITABLE:
            return Refused(
                f"{place.shown} has {found.size} bytes; files over {MAX_EDITABLE} bytes cannot "
                "be edited with this tool. Use bash (sed, a script) instead."
            )
        data = _read_all(found.descriptor, MAX_EDITABLE + 1)
        return Content(data, found.mode, found.links, _of_bytes(data))


def save(place: Place, data: bytes, mode: int | None) -> str | Refused:
    """Put `data` in place of the file; gives the fingerprint. Missing folders are made.

    `mode` None is a new file (0666 less the umask).
    """
    if not place.parts:
        return Refused(f"{place.shown} is a folder, not a file.")
    name = place.parts[-1]
    try:
        with made_beneath(place.base, place.parts[:-1]) as folder:
            _replace(folder, name, data, mode)
    except OSError as error:
        return Refused(f"{place.shown} cannot be written: {error.strerror}.")
    return _of_bytes(data)


def unread(place: Place, fingerprint: str, files: SessionFiles) -> Refused | None:
    """The read-first rule: why a file with this fingerprint may not be changed yet."""
    seen = files.seen.get(place.path)
    if seen == fingerprint:
        return None
    if seen is None:
        return Refused(
            f"{place.shown} exists but was not read in this session. Use the read tool on it "
            "first, then repeat this call."
        )
    return Refused(
        f"{place.shown} has changed since it was last read. Use the read tool on it again, then "
        "repeat this call with what it says now."
    )


def _looked_at(descriptor: int, place: Place) -> Opened | Folder | Refused:
    info = os.fstat(descriptor)
    if stat.S_ISDIR(info.st_mode):
        return _listed(descriptor)
    if not stat.S_ISREG(info.st_mode):
        return Refused(_irregular(place, info.st_mode))
    if info.st_size > MAX_EDITABLE:
        mark = f"stat:{info.st_dev}:{info.st_ino}:{info.st_size}:{info.st_mtime_ns}"
    else:
        mark = _of_bytes(_read_all(descriptor, MAX_EDITABLE + 1))
        os.lseek(descriptor, 0, os.SEEK_SET)
    return Opened(descriptor, info.st_size, stat.S_IMODE(info.st_mode), info.st_nlink, mark)


def _unopened(error: OSError, place: Place) -> Missing | Refused:
    if error.errno == errno.ENOENT:
        return Missing(_near(place))
    if error.errno in {errno.ELOOP, errno.EXDEV}:
        return Refused(f"{place.shown} goes through a link that leads in circles or was changed.")
    if error.errno == errno.ENOTDIR:
        return Refused(f"{place.shown}: a part of the path is not a folder.")
    if error.errno in {errno.ENXIO, errno.ENODEV}:
        return Refused(_irregular(place, stat.S_IFSOCK))
    return Refused(f"{place.shown} cannot be opened: {error.strerror}.")


def _irregular(place: Place, mode: int) -> str:
    kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
    return f"{place.shown} is {kind}; only regular files can be read or written."


def _listed(descriptor: int) -> Folder:
    with os.scandir(descriptor) as entries:
        names = sorted(
            printable(entry.name) + ("/" if entry.is_dir(follow_symlinks=False) else "")
            for entry in entries
            if not is_git_name(entry.name)
        )
    return Folder(tuple(names[:MAX_LISTED]), len(names))


def _near(place: Place) -> tuple[str, ...]:
    """Names like the missing one in the nearest folder that exists."""
    for depth in range(len(place.parts) - 1, -1, -1):
        wanted = place.parts[depth]
        try:
            with (
                folder_beneath(place.base, place.parts[:depth]) as folder,
                os.scandir(folder) as entries,
            ):
                names = [entry.name for entry in islice(entries, 10_000)]
        except OSError:
            continue
        lowered = {name.casefold(): name for name in names if not is_git_name(name)}
        close = get_close_matches(wanted.casefold(), lowered, n=3, cutoff=0.5)
        above = "" if place.inside else "/"
        return tuple(
            printable(above + "/".join([*place.parts[:depth], lowered[name]])) for name in close
        )
    return ()


def _replace(folder: int, name: str, data: bytes, mode: int | None) -> None:
    temporary = f".harness-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(data)
            if mode is not None:
                os.fchmod(descriptor, mode)
        _refuse_irregular(folder, name)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _refuse_irregular(folder: int, name: str) -> None:
    """A link, FIFO or device that appeared meanwhile is not replaced."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is not a regular file any more ({stat.filemode(mode)})")


def _read_all(descriptor: int, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := os.read(descriptor, min(most, 1 << 20))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _of_bytes(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
