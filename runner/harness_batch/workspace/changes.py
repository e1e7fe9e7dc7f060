"""What changed in a folder since a commit, put into an index, whatever the agent left there.

Never `git add`: it would take nested repositories as submodules and stop at odd names. git lists
what differs, this file looks at each path and says what goes in. No process of the agent is alive
by then, so what is looked at stays as it is.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import trio
from attrs import evolve, field, frozen

from harness_batch.errors import GitError
from harness_batch.workspace.git import Git
from harness_batch.workspace.gitdir import NEVER_IN_A_PATCH
from harness_batch.workspace.patch_rules import PatchEntry

MAX_FILE_BYTES = 64 << 20
MAX_TOTAL_BYTES = 256 << 20
MAX_PATHS = 50_000
"""Beyond these a change is left out and named as a problem: a patch is no place for it."""

NEVER = frozenset(map(os.fsencode, NEVER_IN_A_PATCH))


@frozen(kw_only=True)
class Staged:
    """What went into the index."""

    problems: tuple[PatchEntry, ...] = ()
    """Changes that were left out."""
    special_bits: frozenset[str] = frozenset()
    """Changed files that are setuid or setgid on disk."""


@frozen
class _Found:
    """A path on disk that an index can hold."""

    path: bytes
    size: int = field(eq=False)
    mode: int = field(eq=False)


async def stage_changes(git: Git, root: Path, leave: frozenset[bytes] = frozenset()) -> Staged:
    """Bring git's index up to the folder `root`, its work tree.

    `leave` are nested repositories (`nested_repositories`) that are not looked into.
    """
    await trio.to_thread.run_sync(_make_readable, root)
    found = await _drop_gone(git, root, await _differing(git))
    untracked = [path for path in await _untracked(git, root, leave) if not _never(path)]
    found += await trio.to_thread.run_sync(_look_at, root, untracked)
    fitting, problems = _within_bounds(found)
    problems += await _add(git, [file.path for file in fitting])
    special = frozenset(
        os.fsdecode(f.path) for f in fitting if f.mode & (stat.S_ISUID | stat.S_ISGID)
    )
    return Staged(problems=tuple(problems), special_bits=special)


async def stage_paths(git: Git, root: Path, paths: Sequence[bytes]) -> None:
    """Bring git's index up to the folder for these paths only, tracked or not."""
    found = await _drop_gone(git, root, paths)
    for problem in await _add(git, [file.path for file in found]):
        raise GitError(f"{problem.path}: {problem.problem}")


async def nested_repositories(git: Git) -> frozenset[bytes]:
    """Folders with a repository of their own in the work tree that the index does not know."""
    listed = await git("ls-files", "--others", "--exclude-standard", "-z")
    return frozenset(path for path in listed.split(b"\0") if path.endswith(b"/"))


async def _drop_gone(git: Git, root: Path, paths: Sequence[bytes]) -> list[_Found]:
    """Take from the index what is no file any more; those that are."""
    found = await trio.to_thread.run_sync(_look_at, root, paths)
    gone = sorted(set(paths) - {file.path for file in found})
    if gone:
        await git("update-index", "--force-remove", "-z", "--stdin", stdin=_lines(gone))
    return found


async def _differing(git: Git) -> list[bytes]:
    """Tracked paths whose file may differ from the index: a superset, by stat data alone."""
    listed = await git("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all")
    return [path for path in listed.split(b"\0")[1::2] if not _never(path)]


async def _untracked(git: Git, root: Path, leave: frozenset[bytes]) -> list[bytes]:
    """Files that git does not know and does not ignore, those in nested repositories too."""
    listed = await git("ls-files", "--others", "--exclude-standard", "-z")
    paths, nested = _split(listed, b"")
    nested = [folder for folder in nested if folder not in leave]
    inside: list[bytes] = []
    while nested:
        folder = nested.pop()
        place = root / os.fsdecode(folder)
        alone = evolve(git, work_tree=place, index=git.git_dir / "no-index")
        files, deeper = _split(
            await alone("ls-files", "--others", "--exclude-standard", "-z"), folder
        )
        inside += files
        nested += deeper
    return paths + await _not_ignored(git, inside)


async def _not_ignored(git: Git, paths: Sequence[bytes]) -> list[bytes]:
    """A nested repository's listing knows only the ignore files from its own top on."""
    if not paths:
        return []
    asked = _lines(b"./" + path for path in paths)  # `:` and `!` at the start are no magic then
    said = await git("check-ignore", "--no-index", "-z", "--stdin", stdin=asked, fine=(0, 1))
    ignored = set(said.split(b"\0"))
    return [path for path in paths if b"./" + path not in ignored]


def _split(listed: bytes, folder: bytes) -> tuple[list[bytes], list[bytes]]:
    """(files, nested repositories) of a listing, seen from the top."""
    paths = [folder + path for path in listed.split(b"\0") if path]
    return [p for p in paths if not p.endswith(b"/")], [p for p in paths if p.endswith(b"/")]


def _never(path: bytes) -> bool:
    return not NEVER.isdisjoint(path.split(b"/"))


def _look_at(root: Path, paths: Iterable[bytes]) -> list[_Found]:
    """Those that are files or links; folders, devices, sockets and pipes are no content."""
    top = os.fsencode(root)
    found = []
    for path in paths:
        place = top + b"/" + path
        try:
            status = os.lstat(place)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            if not status.st_mode & stat.S_IRUSR:
                os.chmod(place, status.st_mode | stat.S_IRUSR)  # noqa: PTH101 - bytes
            found.append(_Found(path, status.st_size, status.st_mode))
        elif stat.S_ISLNK(status.st_mode):
            found.append(_Found(path, 0, 0))
    return found


def _make_readable(root: Path) -> None:
    """Open the folders that the agent closed to everybody, their owner too."""
    if not root.is_dir() or root.is_symlink():
        raise GitError(f"the workspace folder {root} is gone or was replaced")
    if os.geteuid() == 0:
        return  # nothing is closed to root

    def unlock(error: OSError) -> None:
        folder = error.filename
        try:
            os.chmod(folder, stat.S_IRWXU)  # noqa: PTH101 - as os.walk names it
        except OSError:
            return
        for _ in os.walk(folder, onerror=unlock):
            pass

    for _ in os.walk(root, onerror=unlock):
        pass


def _within_bounds(found: Sequence[_Found]) -> tuple[list[_Found], list[PatchEntry]]:
    fitting: list[_Found] = []
    problems: list[PatchEntry] = []
    total = 0
    for file in sorted(found, key=lambda file: file.path):
        if file.size > MAX_FILE_BYTES or total + file.size > MAX_TOTAL_BYTES:
            problems.append(_left_out(file.path, f"has {file.size} bytes, too many for a patch"))
        elif len(fitting) == MAX_PATHS:
            problems.append(_left_out(file.path, f"comes after {MAX_PATHS} other changed files"))
            break
        else:
            total += file.size
            fitting.append(file)
    return fitting, problems


async def _add(git: Git, paths: Sequence[bytes]) -> list[PatchEntry]:
    """Add them; halve on refusal, so that one path git will not have does not cost the others."""
    if not paths:
        return []
    try:
        await git("update-index", "--add", "--replace", "-z", "--stdin", stdin=_lines(paths))
    except GitError as error:
        if len(paths) == 1:
            return [_left_out(paths[0], f"git refuses it ({str(error).splitlines()[-1]})")]
        half = len(paths) // 2
        return await _add(git, paths[:half]) + await _add(git, paths[half:])
    return []


def _left_out(path: bytes, problem: str) -> PatchEntry:
    return PatchEntry(path=os.fsdecode(path), status="X", problem=problem)


def _lines(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)
