"""The user's `auth.json`: keys by provider, for nobody's eyes but the user's.

It is read only when it is an ordinary file of the user's own that nobody else can read, and
written whole or not at all. Nothing that stands in it is ever quoted. Its shape:

    {"anthropic": {"key": "..."}, "copilot": {"key": "..."}}

For `copilot` the key is the GitHub token of its login.
"""

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import field, frozen

from harness_batch.errors import UsageError

NAME = "auth.json"
MAX_BYTES = 1_000_000
FOR_OTHERS = 0o077
"""Permission bits that must not be set."""


@frozen
class Stored:
    """What the file says, or why it is not believed. A file that is not there says nothing."""

    file: Path | None = None
    """Where it is or would be; None without a home."""
    keys: Mapping[str, str] = field(factory=dict, repr=False)
    trouble: str | None = None
    """Why nothing of it is used, and how to mend that."""


def user_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's configuration folder (XDG); None without a home."""
    if base := environ.get("XDG_CONFIG_HOME"):
        return Path(base, "harness-batch")
    home = environ.get("HOME")
    return Path(home, ".config", "harness-batch") if home else None


def stored_keys(environ: Mapping[str, str]) -> Stored:
    """The user's own file."""
    folder = user_folder(environ)
    return Stored() if folder is None else read_stored(folder / NAME)


def read_stored(file: Path) -> Stored:
    """One file, of which nothing is used when anything is wrong with it."""
    try:
        content = _content(file)
        return Stored(file, {} if content is None else _keys(content))
    except _Distrusted as error:
        return Stored(file, trouble=f"{file} {error}")


def store_key(file: Path, provider: str, key: str) -> None:
    """Put a provider's key in, whatever else stands there. Raises: UsageError."""
    _changed(file, lambda entries: {**entries, provider: {"key": key}})


def drop_key(file: Path, provider: str) -> bool:
    """Take a provider out; False when it was not there. Raises: UsageError."""
    if not file.parent.is_dir():
        return False
    dropped: list[str] = []

    def without(entries: dict[str, Any]) -> dict[str, Any]:
        dropped.extend(name for name in entries if name == provider)
        return {name: entry for name, entry in entries.items() if name != provider}

    _changed(file, without)
    return bool(dropped)


class _Distrusted(Exception):
    """Why the file is not used; its name goes before."""


def _content(file: Path) -> bytes | None:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        descriptor = os.open(file, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if file.is_symlink():
            raise _Distrusted("is a symbolic link; put the file itself there") from None
        raise _Distrusted(f"cannot be read: {error.strerror}") from None
    try:
        _look_at(os.fstat(descriptor), file)
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise _Distrusted(f"is larger than {MAX_BYTES:,} bytes")
    return content


def _look_at(found: os.stat_result, file: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _Distrusted("is not an ordinary file")
    if found.st_uid != os.geteuid():
        raise _Distrusted(f"belongs to another user (uid {found.st_uid}); chown it, or log in")
    mode = stat.S_IMODE(found.st_mode)
    if mode & FOR_OTHERS:
        raise _Distrusted(f"is open to others than its owner (mode {mode:04o}): chmod 600 {file}")


def _keys(content: bytes) -> dict[str, str]:
    return {name: entry["key"] for name, entry in _entries(content).items()}


def _entries(content: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        # Not a word of where or why: the words of a decoder quote.
        raise _Distrusted("is not JSON; remove it and log in again") from None
    if not isinstance(entries, dict):
        raise _Distrusted('must hold one object: provider -> {"key": ...}')
    for name, entry in entries.items():
        if not (isinstance(entry, dict) and isinstance(entry.get("key"), str) and entry["key"]):
            raise _Distrusted(f'has no "key" for provider {name!r}; log in again')
    return entries


def _changed(file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(file.parent):
            before = _entries(_content(file) or b"")
            after = change(before)
            if after != before:
                _replace(file, json.dumps(after, indent=2) + "\n")
    except _Distrusted as error:
        raise UsageError(f"{file} {error}") from None
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of two logins at once the second waits, so that neither loses the other's key."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(file: Path, text: str) -> None:
    # mkstemp makes it 0600 under a name that was not there: no moment at which others can read it.
    descriptor, name = tempfile.mkstemp(prefix=f".{NAME}.", dir=file.parent)
    new = Path(name)
    try:
        with open(descriptor, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
