"""What of the host's files a session's commands see: a treatment for each path that has one."""

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from harness_batch.sandbox.policy import Treatment
from harness_batch.sandbox.secrets_at import hidden, homes

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix")
"""What a narrow view shows, beside what is named."""
_PACKAGE = Path(__file__).parents[2]
"""The folder that our own package is imported from."""


def host_view(environ: Mapping[str, str], hide: Iterable[Path] = ()) -> dict[Path, Treatment]:
    """What all sessions see of the host: secrets hidden, what PATH names and we run on shown."""
    shown = {path.resolve() for path in (*toolchains(environ), *runtime())}
    return {**dict.fromkeys(shown, "read"), **hidden(environ, hide)}


def extended(
    base: Mapping[Path, Treatment],
    *,
    write: Iterable[Path],
    read: Iterable[Path] = (),
    protected: Iterable[Path] = (),
    hide: Iterable[Path] = (),
) -> dict[Path, Treatment]:
    """The same with a session's own paths; those that are not there are left out. Blocks.

    What is hidden stays so, whatever is said of a folder around it.
    """
    said: tuple[tuple[Iterable[Path], Treatment], ...] = (
        (read, "read"),
        (write, "write"),
        (protected, "protected"),
    )
    found = dict(base)
    for paths, treatment in said:
        for path in paths:
            if path.exists() and found.get(place := path.resolve()) != "hidden":
                found[place] = treatment
    return {**found, **{path.resolve(): "hidden" for path in hide if path.exists()}}


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
    yield from {Path(sysconfig.get_path(name)) for name in names}
    yield from (path for path in map(Path, sys.path) if path.is_absolute() and path.is_dir())


def parents_first(paths: Mapping[Path, Treatment]) -> list[tuple[Path, Treatment]]:
    """In the order in which they can be laid over each other."""
    return sorted(paths.items(), key=lambda entry: len(entry[0].parts))


def readable_beside(
    paths: Mapping[Path, Treatment], tops: Iterable[Path]
) -> Iterator[tuple[Path, bool]]:
    """(path, with all below it): what to allow where only allowing is possible. Blocks.

    That is `tops` and what is treated so, without what is hidden. A folder that something hidden
    lies in is taken apart; its links are left out, since what they lead to has its own place.
    """
    secret = {path for path, treatment in paths.items() if treatment == "hidden"}
    around = {above for path in secret for above in path.parents}
    shown = tuple(tops)
    for top in shown:
        yield from _beside(top, secret, around)
    for path, treatment in paths.items():
        above = set(path.parents)
        if treatment == "read" and (secret & above or not above.intersection(shown)):
            yield from _beside(path, secret, around)


def _beside(top: Path, secret: set[Path], around: set[Path]) -> Iterator[tuple[Path, bool]]:
    if top in secret:
        return
    if top not in around:
        yield top, True
        return
    yield top, False
    with suppress(OSError), os.scandir(top) as entries:
        for entry in entries:
            if not entry.is_symlink():
                yield from _beside(Path(entry.path), secret, around)
