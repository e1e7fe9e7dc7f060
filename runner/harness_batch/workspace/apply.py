"""Applies a session's patch to a checkout: three-way, all of it or nothing.

The merge happens in the index of a throw-away git directory; what comes out is one plain patch
against the files as they are, and git checks all of it before it writes the first byte. The
checkout's own index, refs and configuration stay as they are.
"""

import os
import tempfile
from pathlib import Path

from harness_batch.errors import GitError, PatchConflict, UsageError
from harness_batch.workspace.changes import stage_paths
from harness_batch.workspace.git import Git
from harness_batch.workspace.gitdir import make_git_dir
from harness_batch.workspace.patch import DIFF
from harness_batch.workspace.repository import Repository, resolve_base


async def apply_patch(repository: Repository, patch: bytes) -> tuple[str, ...]:
    """Change the checkout's files; the paths that changed (none when it all was there already).

    Raises: PatchConflict, which names the files, with the checkout untouched; GitError.
    """
    if repository.bare:
        raise UsageError(f"{repository.path} is a bare repository; name a checkout")
    head = resolve_base(repository, "HEAD")
    with tempfile.TemporaryDirectory(prefix="hb-apply-") as folder:
        git_dir = make_git_dir(Path(folder) / "git", repository, head)
        git = Git(git_dir=git_dir, work_tree=repository.path)
        await git("read-tree", head or "--empty")
        await stage_paths(git, repository.path, await _touched(git, patch))
        before = (await git("write-tree")).decode().strip()
        await _merge(git, patch)
        after = (await git("write-tree")).decode().strip()
        change = await git("diff-tree", "-r", "-p", *DIFF, before, after)
        if not change:
            return ()
        try:
            await git("apply", "--whitespace=nowarn", "-", stdin=change)
        except GitError as error:
            raise PatchConflict(f"the patch does not apply: {error}") from error
        names = await git("diff-tree", "-r", "--name-only", "-z", "--no-renames", before, after)
        return tuple(os.fsdecode(name) for name in names.split(b"\0") if name)


async def _touched(git: Git, patch: bytes) -> list[bytes]:
    try:
        listed = await git("apply", "--numstat", "-z", "-", stdin=patch)
    except GitError as error:
        raise PatchConflict(f"this is no patch that git understands: {error}") from error
    return [record.split(b"\t", 2)[2] for record in listed.split(b"\0") if record]


async def _merge(git: Git, patch: bytes) -> None:
    """Into the index alone. Raises: PatchConflict."""
    try:
        await git("apply", "--cached", "--3way", "--whitespace=nowarn", "-", stdin=patch)
    except GitError as error:
        listed = await git("ls-files", "--unmerged", "-z")
        unmerged = {line.partition(b"\t")[2] for line in listed.split(b"\0") if line}
        names = ", ".join(os.fsdecode(name) for name in sorted(unmerged))
        raise PatchConflict(
            f"the patch conflicts with the checkout in {names}"
            if names
            else f"the patch does not apply to the checkout: {error}"
        ) from error
