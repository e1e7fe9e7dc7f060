"""In a job of a pull request: recipes and configuration of the repository come from its base.

What is under review must not decide how it is reviewed: neither what an agent may do (recipes) nor
what it may not (denies of `harness.jsonc`). Agents, skills, commands and notes: see shelves.py.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

from harness_batch.app.ci import review_base
from harness_batch.app.options import ConfigSources, Inputs
from harness_batch.errors import Fault, GitError, UsageError
from harness_batch.workspace.git import Git
from harness_batch.workspace.gitdir import make_git_dir
from harness_batch.workspace.repository import Repository, discover, resolve_base

CONFIGURATION = "harness.jsonc"


@frozen
class Base:
    """What the change of a repository is against, and a folder for files of that commit."""

    repository: Repository
    ref: str
    sha: str
    place: Path
    """Private to this process; gone when it ends."""

    @property
    def tree(self) -> Path:
        """Files of the base, as far as they were asked for, at their paths."""
        return self.place / "tree"

    def file(self, path: Path) -> Path:
        """Where the base's version of a file of the checkout is, or would be."""
        return self.tree / path.relative_to(self.repository.path)

    def check_out(self, path: Path) -> bool:
        """Put that file or folder of the base into `tree`; False: it has none. Raises: GitError."""
        inside = path.relative_to(self.repository.path).as_posix()
        git = Git(git_dir=self.place / "git", work_tree=self.tree)
        listed = git.now("ls-tree", "-r", "--name-only", "-z", self.sha, "--", inside)
        if listed:
            git.now("checkout", "-q", self.sha, "--", f":(literal){inside}")
        return bool(listed)


def recipe_to_open(path: Path, inputs: Inputs) -> tuple[Path, tuple[Fault, ...]]:
    """The file that is opened for a recipe, and a warning where it is not the one that was named.

    Raises: UsageError when the recipe is the change's own; GitError.
    """
    ref = None if inputs.trust_repo else review_base(inputs.environ)
    repository = _around(inputs.cwd) if ref is not None else None
    if ref is None or repository is None or not path.resolve().is_relative_to(repository.path):
        return path, ()
    mend = "or let the change decide how it is reviewed with --trust-repo"
    try:
        base = _base(repository, ref)
    except GitError as error:
        raise UsageError(
            f"{path}: in a job of a pull request recipes are taken from its base, and {error}; "
            f"fetch it before (git fetch origin, fetch-depth: 0), {mend}"
        ) from error
    file = path.resolve()
    if not base.check_out(file.parent) or not base.file(file).is_file():
        raise UsageError(
            f"{path}: the recipe is not in {ref}, which this change is against; name one that is, "
            f"{mend}"
        )
    if _same(base.file(file).parent, file.parent):
        return path, ()
    told = f"the recipe is taken from {ref}, as this change touches it or files beside it"
    return base.file(file), (Fault(path, 0, 0, told, "warning"),)


def configuration_folder(sources: ConfigSources) -> Path:
    """The folder whose `harness.jsonc` files count: that of the invocation, or its twin.

    A base that is not there is no error here: those files can only tighten, so the change's own
    are better than none.
    """
    ref = review_base(sources.environ)
    repository = _around(sources.cwd) if ref is not None and not sources.trust_repo else None
    if ref is None or repository is None:
        return sources.cwd
    try:
        base = _base(repository, ref)
        here = sources.cwd.resolve()
        for folder in (here, *here.parents):
            if folder.is_relative_to(repository.path):
                base.check_out(folder / CONFIGURATION)
    except GitError:
        return sources.cwd
    twin = base.tree / here.relative_to(repository.path)
    twin.mkdir(parents=True, exist_ok=True)
    return twin


def configuration_file(sources: ConfigSources) -> Path | None:
    """The file of `--config`; when it is one of the repository, its version of the base.

    A workflow names it, but the change wrote it: it could send the keys to a provider of its own.

    Raises: UsageError when the base does not have it; GitError.
    """
    ref = None if sources.trust_repo else review_base(sources.environ)
    repository = _around(sources.cwd) if ref is not None else None
    named = sources.explicit
    if named is None or ref is None or repository is None:
        return named
    # Where it stands and where it leads: a link of the change is the change's as well.
    standing = Path(os.path.normpath(sources.cwd.resolve() / named))
    leading = standing.resolve()
    if not any(path.is_relative_to(repository.path) for path in (standing, leading)):
        return named
    told = f"--config {named}: in a job of a pull request it is taken from {ref}, and"
    if not standing.is_relative_to(repository.path):
        raise UsageError(f"{told} this is a link into the checkout: name the file itself")
    try:
        base = _base(repository, ref)
        found = base.check_out(standing) and base.file(standing).is_file()
    except GitError as error:
        raise UsageError(f"{told} {error}; fetch it before (fetch-depth: 0)") from error
    if not found:
        raise UsageError(f"{told} it has no such file; name one outside of the checkout")
    return base.file(standing)


def _around(folder: Path) -> Repository | None:
    try:
        found = discover(folder)
    except GitError:
        return None
    return None if found.bare else found


@cache
def _base(repository: Repository, ref: str) -> Base:
    """Raises: GitError when the repository does not have it."""
    sha = resolve_base(repository, ref)
    if sha is None:
        raise GitError(f"{ref} has no commit yet")
    place = Path(tempfile.mkdtemp(prefix="hb-base-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "tree" / ".git").mkdir(parents=True)  # the search for configuration ends here
    make_git_dir(place / "git", repository, sha)
    return Base(repository, ref, sha, place)


def _same(base: Path, ours: Path) -> bool:
    """Whether both folders hold the same files; what is no regular file differs."""
    theirs = dict(_files(base))
    for name, path in _files(ours):
        other = theirs.pop(name, None)
        if other is None or path.is_symlink() or not path.is_file():
            return False
        if path.stat().st_size != other.stat().st_size or path.read_bytes() != other.read_bytes():
            return False
    return not theirs


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            path = Path(here, name)
            yield path.relative_to(folder).as_posix(), path
