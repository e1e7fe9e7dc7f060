"""Removes a folder whatever an agent made of it: closed to its owner, a million files, very deep.

Blocking; call it in a thread. Folders inside are first moved up to the top, so no path grows long
and nothing recurses. Links are removed, never followed.
"""

import os
import stat
from collections.abc import Iterable
from itertools import count
from pathlib import Path


def remove_folder(folder: Path) -> tuple[str, ...]:
    """Remove it, if it is there; what could not be removed comes back in words, not as an error."""
    if folder.is_symlink() or not folder.is_dir():
        return ()
    troubles = list(empty_folder(folder))
    _try(troubles, os.rmdir, os.fsencode(folder))
    return tuple(dict.fromkeys(troubles))


def empty_folder(folder: Path, keep: frozenset[bytes] = frozenset()) -> tuple[str, ...]:
    """Remove all that lies in it, as `remove_folder` does; the folder itself stays.

    So do the entries of it that are called as in `keep`.
    """
    troubles: list[str] = []
    fresh = (f".removed-{os.getpid()}-{number}" for number in count())
    top = os.fsencode(folder)
    waiting = [top]
    while waiting:
        place = waiting.pop()
        spared = keep if place == top else frozenset[bytes]()
        waiting.extend(_empty(place, top, fresh, troubles, spared))
        if place != top:
            _try(troubles, os.rmdir, place)
    return tuple(dict.fromkeys(troubles))


def _empty(
    place: bytes, top: bytes, fresh: Iterable[str], troubles: list[str], keep: frozenset[bytes]
) -> list[bytes]:
    """Unlink what lies in `place`, move its folders up; the moved folders."""
    moved: list[bytes] = []
    _try(troubles, os.chmod, place, stat.S_IRWXU)
    for entry in _entries(place, troubles):
        if entry.name in keep:
            continue
        if not entry.is_dir(follow_symlinks=False):
            _try(troubles, os.unlink, entry.path)
            continue
        target = os.path.join(top, os.fsencode(next(iter(fresh))))  # noqa: PTH118 - bytes
        _try(troubles, os.chmod, entry.path, stat.S_IRWXU)  # a folder's own bits forbid its move
        if _try(troubles, os.rename, entry.path, target):
            moved.append(target)
    return moved


def _entries(place: bytes, troubles: list[str]) -> list["os.DirEntry[bytes]"]:
    try:
        with os.scandir(place) as entries:
            return list(entries)
    except OSError as error:
        troubles.append(_words(error))
        return []


def _try(troubles: list[str], act: object, *args: object) -> bool:
    assert callable(act)
    try:
        act(*args)
    except FileNotFoundError:
        return False
    except OSError as error:
        troubles.append(_words(error))
        return False
    return True


def _words(error: OSError) -> str:
    name = os.fsdecode(error.filename or b"")
    return f"cannot remove {name!r}: {error.strerror}"
