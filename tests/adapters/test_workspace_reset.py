"""A workspace put back to its base: as if the agent had never been there."""

from pathlib import Path

import pytest

from harness_batch.recipe.record import WorkspaceWish
from harness_batch.workspace.owner import worktrees_folder
from harness_batch.workspace.reset import reset
from harness_batch.workspace.worktree import open_workspace
from workspace_repos import COMMIT, IN_PLACE, WORKTREE, committed, git, opened, tree_of


def session(tmp_path: Path) -> Path:
    return worktrees_folder(tmp_path / "cache") / "run_1" / "ses_1"


FILES = {
    "a.txt": "1\n",
    "b/c": "2\n",
    "run.sh": "#!/bin/sh\n",
    ".gitignore": "*.log\nbuild/\n",
    ".gitattributes": "*.txt text\n",
}


def spoil(root: Path) -> None:
    """What an agent may leave: changes, losses, ignored files, closed folders, links, commits."""
    (root / "a.txt").write_text("changed")
    (root / "b" / "c").unlink()
    (root / "b").rmdir()
    (root / "b").symlink_to("/etc")
    (root / "run.sh").chmod(0o755)
    (root / "x.log").write_text("ignored")
    (root / "build" / "deep").mkdir(parents=True)
    (root / "build" / "deep" / "o").write_text("o")
    (root / "build").chmod(0)
    (root / ".gitattributes").write_text("*.txt filter=x ident\n")
    (root / "new").mkdir()
    (root / "new" / "file").write_text("n")


async def test_a_worktree_is_the_base_again_ignored_files_and_all(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", FILES)
    expected = tree_of(top)
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        root, inode = workspace.root, workspace.root.stat().st_ino
        spoil(root)
        assert await workspace.capture(COMMIT) is not None

        assert await reset(workspace) == ()

        assert tree_of(root) == expected
        assert root.stat().st_ino == inode, "programs may stand in the folder"
        assert await workspace.capture(COMMIT) is None
        (root / "a.txt").write_text("second try\n")
        captured = await workspace.capture(COMMIT)
        assert captured is not None
        assert captured.paths == ("a.txt",)


async def test_what_the_agent_did_with_git_is_gone_too(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", FILES)
    git(top, "tag", "v1.0")
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        root = workspace.root
        (root / "a.txt").write_text("mine\n")
        git(root, "checkout", "-q", "-b", "work")
        git(root, "commit", "-q", "-a", "-m", "mine")
        git(root, "config", "core.hooksPath", "/tmp")
        (root / ".git").unlink()

        await reset(workspace)

        assert git(root, "rev-parse", "HEAD") == base
        assert git(root, "status", "--porcelain") == ""
        assert git(root, "describe", "--tags") == "v1.0"
        assert git(root, "for-each-ref", "--format=%(refname)") == git(
            top, "for-each-ref", "--format=%(refname)"
        )
        assert "hooksPath" not in git(root, "config", "--local", "--list")


async def test_a_workspace_without_a_base_is_empty_again(tmp_path: Path) -> None:
    top = tmp_path / "r"
    top.mkdir()
    git(top, "init", "-q")
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        (workspace.root / "new").write_text("n")
        await reset(workspace)
        assert [path.name for path in workspace.root.iterdir()] == [".git"]


async def test_the_users_own_checkout_is_put_back_to_how_it_was_and_keeps_what_git_ignores(
    tmp_path: Path,
) -> None:
    top = committed(tmp_path / "r", FILES)
    (top / "a.txt").write_text("the user's work in progress\n")
    (top / "draft").write_text("untracked\n")
    (top / "keep.log").write_text("ignored\n")
    nested = committed(top / "other", {"own": "1\n"})
    index = (top / ".git" / "index").read_bytes()
    expected = tree_of(top)
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=IN_PLACE, folder=session(tmp_path)
    ) as workspace:
        (top / "a.txt").write_text("agent\n")
        (top / "draft").unlink()
        (top / "new").mkdir()
        (top / "new" / "file").write_text("n")
        (top / "run.sh").unlink()

        await reset(workspace)

        assert tree_of(top) == expected
        assert (nested / "own").read_text() == "1\n"
        assert await workspace.capture(COMMIT) is None
    assert (top / ".git" / "index").read_bytes() == index


@pytest.mark.parametrize("path", ["b", "."])
async def test_the_agents_folder_is_there_again(path: str, tmp_path: Path) -> None:
    top = committed(tmp_path / "r", FILES)
    repository, base = opened(top)
    async with open_workspace(
        repository=repository,
        base_sha=base,
        wish=WorkspaceWish(path=path),
        folder=session(tmp_path),
    ) as workspace:
        spoil(workspace.root)
        await reset(workspace)
        assert workspace.cwd.is_dir()
        assert workspace.cwd.resolve() == workspace.cwd
