"""Which git repository a folder belongs to, and which commit a session starts from.

Reading only. The git directory is found by hand and named explicitly in every call: so a
repository that somebody else owns (a CI container) needs no `safe.directory`, and no path can be
misread, newlines included.
"""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from harness_batch.errors import GitError
from harness_batch.workspace.git import Git

_CONFIGURATIONS = {"config", "config.worktree"}


@frozen(kw_only=True)
class Repository:
    """The user's repository; the runner reads it and never writes to it."""

    path: Path
    """Top level of the checkout, resolved; of a bare repository the git directory."""
    git_dir: Path
    common_dir: Path
    """Where objects and refs lie: another folder than `git_dir` in a linked worktree."""
    bare: bool
    shallow: bool
    object_format: str
    """sha1 or sha256."""

    def git(self) -> Git:
        """For reading; no work tree, so nothing of the checkout is looked at."""
        return Git(git_dir=self.git_dir)

    @property
    def objects(self) -> Path:
        """The object store."""
        return self.common_dir / "objects"


def discover(path: Path) -> Repository:
    """The repository that `path` lies in. Raises: GitError when it lies in none."""
    start = path.absolute()
    if not start.exists():
        raise GitError(f"{path} does not exist")
    start = start.resolve()
    for folder in (start, *start.parents):
        git_dir = _git_dir(folder / ".git")
        if git_dir is not None:
            return _repository(folder, git_dir, bare=False)
        if folder == start and _is_git_dir(folder):
            return _bare(folder)
    raise GitError(
        f"{path} is not in a git repository; name one with --repo, or make one with `git init`"
    )


def configurations(repository: Repository) -> Iterator[Path]:
    """Files that may hold tokens: its configuration, and those of its submodules. Blocks."""
    yield repository.common_dir / "config"
    yield repository.git_dir / "config.worktree"
    for top in dict.fromkeys((repository.common_dir, repository.git_dir)):
        for folder, below, files in os.walk(top / "modules"):
            yield from (Path(folder, name) for name in files if name in _CONFIGURATIONS)
            if "objects" in below:  # a git directory; others may lie beside its objects
                below[:] = [name for name in below if name in {"modules", "worktrees"}]


def resolve_base(repository: Repository, ref: str) -> str | None:
    """The commit that `ref` names; None when HEAD has no commit yet (the empty tree is the base).

    Raises: GitError for an unknown ref, naming near ones.
    """
    git = repository.git()
    found = git.now(
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{ref}^{{commit}}",
        fine=(0, 1, 128),
    )
    if found.strip():
        return found.decode().strip()
    if ref == "HEAD" and git.now("symbolic-ref", "--quiet", "HEAD", fine=(0, 1)):
        return None
    raise GitError(_unknown(repository, ref))


def _unknown(repository: Repository, ref: str) -> str:
    listed = repository.git().now("for-each-ref", "--format=%(refname:lstrip=2)")
    names = listed.decode("utf-8", "replace").split("\n")
    near = difflib.get_close_matches(ref, filter(None, names), n=3, cutoff=0.5)
    message = f"{ref!r} names no commit of {repository.path}"
    if near:
        return f"{message}; did you mean {', '.join(near)}?"
    if repository.shallow:
        return f"{message}; it is a shallow clone: fetch the commit first (git fetch --unshallow)"
    return message


def _git_dir(place: Path) -> Path | None:
    """What a `.git` stands for: itself, or the folder that a `gitdir:` file points to."""
    if place.is_dir():
        return place if _is_git_dir(place) else None
    if not place.is_file():
        return None
    pointer = place.read_bytes()
    if not pointer.startswith(b"gitdir: "):
        return None
    target = os.fsdecode(pointer.removeprefix(b"gitdir: ").rstrip(b"\r\n"))
    git_dir = (place.parent / target).resolve()
    if not _is_git_dir(git_dir):
        raise GitError(f"{place} points to {git_dir}, which is not a git directory")
    return git_dir


def _is_git_dir(folder: Path) -> bool:
    if not (folder / "HEAD").is_file() and not (folder / "HEAD").is_symlink():
        return False
    common = _common_dir(folder)
    return (common / "objects").is_dir() and (common / "refs").is_dir()


def _common_dir(git_dir: Path) -> Path:
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    return (git_dir / os.fsdecode(pointer.read_bytes().rstrip(b"\r\n"))).resolve()


def _bare(folder: Path) -> Repository:
    said = Git(git_dir=folder).now("config", "--type=bool", "--get", "core.bare", fine=(0, 1))
    if said.strip() == b"false":
        raise GitError(f"{folder} is the inside of a git directory; name the checkout instead")
    return _repository(folder, folder, bare=True)


def _repository(path: Path, git_dir: Path, *, bare: bool) -> Repository:
    common = _common_dir(git_dir)
    said = Git(git_dir=git_dir).now("rev-parse", "--show-object-format")
    return Repository(
        path=path,
        git_dir=git_dir,
        common_dir=common,
        bare=bare,
        shallow=(common / "shallow").is_file(),
        object_format=said.decode().strip(),
    )
