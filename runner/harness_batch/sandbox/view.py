"""What of the host's files a session's commands see: a treatment for each path that has one."""

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from harness_batch.sandbox.policy import Treatment
from harness_batch.sandbox.secrets_at import hidden, homes

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix")
"""What a narrow view shows, beside what is named."""
_PACKAGE = Path(__file__).parents[2]
"""The folder that our own package is imported from."""


def treatments(
    environ: Mapping[str, str],
    *,
    write: Iterable[Path],
    read: Iterable[Path] = (),
    protected: Iterable[Path] = (),
    hide: Iterable[Path] = (),
) -> dict[Path, Treatment]:
    """The paths of a policy: secrets hidden, what PATH names and we run on shown, and the rest.

    Of what is said twice the more open counts; nothing of it opens a hidden path below. Blocks.
    """
    found: dict[Path, Treatment] = {}
    for path in (*toolchains(environ), *runtime(), *read):
        found[path.resolve()] = "read"
    found |= hidden(environ, hide)
    for path in write:
        found[path.resolve()] = "write"
    for path in protected:
        if path.exists():
            found[path.resolve()] = "protected"
    return found


def toolchains(environ: Mapping[str, str]) -> Iterator[Path]:
    """What PATH names, with the folder above a `bin`, where libraries lie beside it."""
    never = {Path("/"), *(place for home in homes(environ) for place in (home, home / ".local"))}
    for entry in dict.fromkeys(environ.get("PATH", "").split(":")):
        folder = Path(entry)
        if not folder.is_absolute() or not folder.is_dir():
            continue
        above = folder.parent
        whole = folder.name in {"bin", "sbin", "shims", "condabin"} and above not in never
        yield folder
        if whole:
            yield above


def runtime() -> Iterator[Path]:
    """What the programs of ours that run in the sandbox are made of."""
    yield _PACKAGE / "harness_batch"
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix}:
        if prefix != "/usr":
            yield Path(prefix)
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    yield from {Path(os.fspath(sysconfig.get_path(name))) for name in names}
    yield from {Path(entry) for entry in sys.path if os.path.isabs(entry) and os.path.isdir(entry)}


def parents_first(paths: Mapping[Path, Treatment]) -> list[tuple[Path, Treatment]]:
    """In the order in which they can be laid over each other."""
    return sorted(paths.items(), key=lambda entry: len(entry[0].parts))


def readable_beside(
    paths: Mapping[Path, Treatment], top: Path = Path("/")
) -> Iterator[tuple[Path, bool]]:
    """(path, with all below it): what to allow where only allowing is possible. Blocks.

    A folder that something hidden lies in is taken apart; its links are left out, since what they
    lead to has its own place.
    """
    treated = paths.get(top)
    below = [path for path in paths if path != top and path.is_relative_to(top)]
    split = any(paths[path] == "hidden" for path in below)
    if treated == "hidden":
        for path in below:
            if paths[path] == "read":
                yield from readable_beside(paths, path)
        return
    if not split:
        yield top, True
        return
    yield top, False
    try:
        entries = list(os.scandir(top))
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink():
            yield from readable_beside(paths, Path(entry.path))
