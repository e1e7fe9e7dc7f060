"""The folder that a session works in: made from a pinned commit, removed whatever happens.

The user's repository is only read. A session's folder in the cache holds
    tree/     what the agent works in; `tree/.git` points to `git`
    git/      a throw-away git directory for the agent: status, log, commit, stash work
    private/  the runner's own: checkout and patch go through it, the agent's is never read
    home/     an empty HOME
    capture/  git directories that patches are taken with, each for one call
and `owner.json`. Every git directory borrows the repository's objects; nothing is shared for
writing, so any number of sessions can start on one repository at once.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import trio
from attrs import evolve, frozen

from harness_batch.errors import GitError, HostError, Unsupported, UsageError
from harness_batch.processes import Launcher
from harness_batch.recipe.record import WorkspaceWish
from harness_batch.workspace.changes import nested_repositories, stage_changes
from harness_batch.workspace.git import Git
from harness_batch.workspace.gitdir import make_git_dir
from harness_batch.workspace.owner import TMP_PREFIX, claimed, is_stale, remove_session
from harness_batch.workspace.patch import Base, Captured, Commit, make_patch
from harness_batch.workspace.removal import remove_folder
from harness_batch.workspace.repository import Repository, resolve_base


@frozen(kw_only=True)
class Workspace:
    """An open one."""

    root: Path
    """Top of the tree, resolved."""
    cwd: Path
    """`workspace.path` in it."""
    base_sha: str | None
    """The commit the session was pinned to; None for a repository without a commit."""
    home: Path
    tmp: Path
    """Private and empty; for HOME and TMPDIR of the tools."""
    repository: Repository
    private: Path
    start: Base
    """What the patch is made against: the base, in-place with what was dirty at the start."""
    leave: frozenset[bytes] = frozenset()
    """Nested repositories of the user, which are not looked into."""
    submodules: tuple[str, ...] = ()
    """Paths of those that were not checked out."""

    async def capture(self, commit: Commit, launcher: Launcher | None = None) -> Captured | None:
        """What changed since the start; None when nothing did. Call it with no tool alive.

        Raises: GitError.
        """
        async with self.own_git(launcher) as git:
            staged = await stage_changes(git, self.root, self.leave)
            captured = await make_patch(git, self.start, staged, commit, self.root)
        return captured and evolve(captured, notices=(*captured.notices, *self._notices()))

    @asynccontextmanager
    async def own_git(self, launcher: Launcher | None) -> AsyncIterator[Git]:
        """Git on the tree, after the agent has run.

        It runs in a directory made for the block, so nothing an agent may have written to the
        others counts, and in the launcher when there is one. Raises: GitError.
        """
        with disk(self.private):
            place = Path(tempfile.mkdtemp(prefix="capture-", dir=self.private.parent / "capture"))
            try:
                git_dir = make_git_dir(
                    place / "git", self.repository, self.start.commit, (self.private / "objects",)
                )
                # its times tell git which entries to distrust, so they are kept
                shutil.copy2(self.private / "index", git_dir / "index")
                yield Git(git_dir=git_dir, work_tree=self.root, launcher=launcher)
            finally:
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(remove_folder, place)

    def _notices(self) -> Iterator[str]:
        for path in self.submodules:
            if not _is_empty(self.root / path):
                yield f"{path} is a submodule: what lies in it is not part of the patch"


@asynccontextmanager
async def open_workspace(
    *,
    repository: Repository,
    base_sha: str | None,
    wish: WorkspaceWish,
    folder: Path,
    keep: bool = False,
    notice: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Workspace]:
    """A workspace for as long as the block runs.

    `folder` is the session's own, `worktrees_folder(cache) / run / session`; it is made here and
    removed at the end; of a kept one only `tmp` is, and the stale clean-up spares it. `notice`
    hears what could not be removed. Raises: GitError; HostError; Unsupported and UsageError for a
    wish that cannot be met.
    """
    _check(repository, base_sha, wish)
    # Short, as paths of sockets go in there; named before it is made, so that the owner file tells
    # of it whenever we die.
    tmp = Path(tempfile.gettempdir(), f"{TMP_PREFIX}{secrets.token_hex(6)}")
    with ExitStack() as claim:
        with disk(folder):
            await trio.to_thread.run_sync(_make_folder, folder)
            claim.enter_context(claimed(folder, tmp, exempt=keep))
        try:
            with disk(folder):
                await trio.to_thread.run_sync(partial(tmp.mkdir, mode=0o700))
                workspace = await _open(repository, base_sha, wish, folder, tmp)
            yield workspace
        finally:
            with trio.CancelScope(shield=True):
                for trouble in await trio.to_thread.run_sync(_clear, folder, tmp, keep):
                    notice(trouble)


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """What the disk refuses ends this session, not the run: an agent may have made it refuse."""
    try:
        yield
    except OSError as error:
        raise HostError(f"cannot keep the workspace in {folder}: {error}") from error


def _clear(folder: Path, tmp: Path, keep: bool) -> tuple[str, ...]:
    troubles = remove_folder(tmp)  # by name: the agent may have removed the owner file
    if keep:
        return troubles
    troubles += remove_session(folder)
    with suppress(OSError):  # other sessions of the run may live there
        folder.parent.rmdir()
    return troubles


def _check(repository: Repository, base_sha: str | None, wish: WorkspaceWish) -> None:
    if wish.submodules:
        raise Unsupported("workspace.submodules: true is not supported yet; leave it out")
    if wish.mode == "worktree":
        return
    if repository.bare:
        raise UsageError(f"workspace.mode: in-place needs a checkout; {repository.path} is bare")
    if base_sha != resolve_base(repository, "HEAD"):
        raise UsageError(
            f"workspace.mode: in-place works on what is checked out, not on {wish.ref!r}; "
            "leave workspace.ref out or check it out first"
        )


def _make_folder(folder: Path) -> None:
    """A dead runner's folder of the same name makes place."""
    if folder.exists():
        if not is_stale(folder):
            raise GitError(f"{folder} is in use by another run")
        remove_session(folder)
    for _ in range(5):  # another session's end may take the run's empty folder away in between
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True, mode=0o700)
            return
    folder.mkdir(parents=True, mode=0o700)


async def _open(
    repository: Repository, base_sha: str | None, wish: WorkspaceWish, folder: Path, tmp: Path
) -> Workspace:
    place = folder.resolve()  # noqa: ASYNC240 - microseconds
    (place / "home").mkdir(mode=0o700)
    (place / "capture").mkdir(mode=0o700)
    private = make_git_dir(place / "private", repository, base_sha)
    root = repository.path if wish.mode == "in-place" else place / "tree"
    git = Git(git_dir=private, work_tree=root)
    leave: frozenset[bytes] = frozenset()
    if wish.mode == "in-place":
        start, leave = await _snapshot(git, base_sha, root)
    else:
        root.mkdir()
        start = await check_out(git, repository, base_sha)
        await equip_agent(repository, base_sha, place)
    return Workspace(
        root=root,
        cwd=_inside(root, wish.path, base_sha),
        base_sha=base_sha,
        home=place / "home",
        tmp=tmp,
        repository=repository,
        private=private,
        start=start,
        leave=leave,
        submodules=await _submodules(git, root),
    )


async def check_out(git: Git, repository: Repository, base_sha: str | None) -> Base:
    """Fill git's empty work tree with the base. Raises: GitError."""
    if base_sha is None:
        await git("read-tree", "--empty")
        return Base(commit=None, tree=_word(await git("write-tree")))
    try:
        await git("read-tree", "-m", "-u", base_sha)
    except GitError as error:
        if next(repository.objects.glob("pack/*.promisor"), None) is None:
            raise
        raise GitError(
            f"{repository.path} is a partial clone without the files of {base_sha}; fetch them "
            "first, for example with `git fetch --refetch --no-filter`"
        ) from error
    return Base(commit=base_sha, tree=f"{base_sha}^{{tree}}")


async def _snapshot(git: Git, base_sha: str | None, root: Path) -> tuple[Base, frozenset[bytes]]:
    """The checkout as it is, dirty or not, as a commit of the private git directory."""
    await git("read-tree", base_sha or "--empty")
    leave = await nested_repositories(git)
    await stage_changes(git, root, leave)
    tree = _word(await git("write-tree"))
    parent = ("-p", base_sha) if base_sha else ()
    commit = Commit(message="The checkout before the session", date="1970-01-01T00:00:00+00:00")
    signed = evolve(git, env=commit.environment())
    made = _word(await signed("commit-tree", tree, *parent, "-m", commit.message))
    return Base(commit=made, tree=tree), leave


async def equip_agent(repository: Repository, base_sha: str | None, place: Path) -> None:
    """Make the agent's git directory: the same index, and the names of branches and tags."""
    git_dir = make_git_dir(place / "git", repository, base_sha)
    if base_sha is not None:
        shutil.copy2(place / "private" / "index", git_dir / "index")
        refs = await repository.git()(
            *("for-each-ref", "--format=%(objectname) %(refname)"),
            *("refs/heads", "refs/tags", "refs/remotes"),
        )
        (git_dir / "packed-refs").write_bytes(refs)
    pointer = b"gitdir: " + os.fsencode(git_dir) + b"\n"
    (place / "tree" / ".git").write_bytes(pointer)


async def _submodules(git: Git, root: Path) -> tuple[str, ...]:
    if not (root / ".gitmodules").is_file():
        return ()
    listed = await git("ls-files", "--stage", "-z")
    links = (line for line in listed.split(b"\0") if line.startswith(b"160000 "))
    paths = (os.fsdecode(line.partition(b"\t")[2]) for line in links)
    return tuple(path for path in paths if _is_empty(root / path))


def _is_empty(folder: Path) -> bool:
    return not folder.is_dir() or next(folder.iterdir(), None) is None


def _inside(root: Path, path: str, base_sha: str | None) -> Path:
    cwd = (root / path).resolve()
    if not cwd.is_relative_to(root):
        raise GitError(f"workspace.path {path!r} leads out of the repository")
    if not cwd.is_dir():
        raise GitError(f"workspace.path {path!r} is no folder of the repository at {base_sha}")
    return cwd


def _word(said: bytes) -> str:
    return said.decode().strip()
