"""Puts an open workspace back to where it began, whatever an agent made of it.

A worktree of the cache is emptied, ignored files and all, and checked out again, with a fresh git
directory for the agent; the folders themselves stay, since programs may hold on to them. In a
checkout of the user only what differs from the start is put back: what git ignores there, and
repositories in it, were the user's before.
"""

import shutil

import trio

from harness_batch.processes import Launcher
from harness_batch.workspace.changes import stage_changes
from harness_batch.workspace.git import Git
from harness_batch.workspace.removal import empty_folder
from harness_batch.workspace.worktree import Workspace, check_out, disk, equip_agent


async def reset(workspace: Workspace, launcher: Launcher | None = None) -> tuple[str, ...]:
    """Call it with no tool alive; what could not be removed comes back in words.

    What the agent made is looked at by git in the launcher only, when there is one.
    Raises: GitError; StorageError.
    """
    place = workspace.private.parent
    if not workspace.root.is_relative_to(place):
        async with workspace.own_git(launcher) as git:
            await stage_changes(git, workspace.root, workspace.leave)
            await git("read-tree", "--reset", "-u", workspace.start.tree)
            shutil.copy2(git.git_dir / "index", workspace.private / "index")
        return ()
    git = Git(git_dir=workspace.private, work_tree=workspace.root)
    with disk(place):
        troubles: list[str] = []
        # The sandbox keeps this very file as it is; another in its place it would not know.
        pointer = workspace.root / ".git"
        keep = frozenset({b".git"} if pointer.is_file() and not pointer.is_symlink() else ())
        troubles += await trio.to_thread.run_sync(empty_folder, workspace.root, keep)
        troubles += await trio.to_thread.run_sync(empty_folder, place / "git")
        await git("read-tree", "--empty")
        await check_out(git, workspace.repository, workspace.base_sha)
        await equip_agent(workspace.repository, workspace.base_sha, place)
        return tuple(troubles)
