"""Opening a file below a folder without following a single link, whoever swaps what meanwhile.

openat2(2) does it in the kernel; where that is missing (before Linux 5.6, or a seccomp filter),
each component is opened by itself with O_NOFOLLOW.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

OPENAT2 = 437
"""The system call's number, the same on every architecture."""
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY | os.O_NONBLOCK
_NOT_HERE = {errno.ENOSYS, errno.EPERM, errno.E2BIG}


def open_beneath(base: Path, parts: Sequence[str], flags: int = os.O_RDONLY) -> int:
    """A descriptor of `base/parts`, opened with `flags`, never blocking.

    Raises: OSError; ELOOP when a component is a link, ENXIO for a socket.
    """
    folder = os.open(base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not parts:
            return os.open(".", flags | _FLAGS, dir_fd=folder)
        try:
            return by_kernel(folder, parts, flags)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
        return by_steps(folder, parts, flags)
    finally:
        os.close(folder)


def by_kernel(folder: int, parts: Sequence[str], flags: int) -> int:
    """One openat2. Raises: OSError, ENOSYS where the kernel has none."""
    how = struct.pack(
        "QQQ",
        flags | _FLAGS,
        0,
        RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
    )
    path = os.fsencode("/".join(parts))
    descriptor = _openat2()(OPENAT2, folder, path, how, len(how))
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "/".join(parts))
    return int(descriptor)


def by_steps(folder: int, parts: Sequence[str], flags: int) -> int:
    """One openat a component. Raises: OSError."""
    if any(part in {"..", ".", ""} or "/" in part for part in parts):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), "/".join(parts))
    here = os.dup(folder)
    try:
        for part in parts[:-1]:
            step = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
            below = os.open(part, step, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1], flags | _FLAGS, dir_fd=here)
    finally:
        os.close(here)


@contextmanager
def folder_beneath(base: Path, parts: Sequence[str]) -> Iterator[int]:
    """A descriptor of the folder `base/parts` to work in. Raises: OSError."""
    descriptor = open_beneath(base, parts, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def made_beneath(base: Path, parts: Sequence[str]) -> Iterator[int]:
    """As `folder_beneath`, with missing folders made. Raises: OSError."""
    for depth in range(1, len(parts) + 1):
        with folder_beneath(base, parts[: depth - 1]) as above:
            try:
                os.mkdir(parts[depth - 1], dir_fd=above)
            except FileExistsError:
                continue
    with folder_beneath(base, parts) as descriptor:
        yield descriptor


@cache
def _openat2() -> Callable[[int, int, bytes, bytes, int], int]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = [
        ctypes.c_long,
        ctypes.c_long,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    return call
