"""A patch goes into a checkout whole or not at all."""

from pathlib import Path

import pytest

from harness_batch.errors import PatchConflict, UsageError
from harness_batch.workspace.apply import apply_patch
from harness_batch.workspace.worktree import open_workspace
from workspace_repos import COMMIT, WORKTREE, committed, git, opened, tree_of, write

LINES = "".join(f"line {n}\n" for n in range(40))


async def patch_of(top: Path, files: dict[str, str | bytes]) -> bytes:
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=top.parent / "run" / "ses"
    ) as workspace:
        write(workspace.root, files)
        captured = await workspace.capture(COMMIT)
    assert captured is not None
    return captured.patch


async def test_it_merges_with_later_commits_and_with_uncommitted_work(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": LINES, "crlf": LINES.replace("\n", "\r\n")})
    patch = await patch_of(
        top,
        {
            "a": LINES.replace("line 3\n", "agent\n"),
            "crlf": LINES.replace("\n", "\r\n").replace("line 3\r", "agent\r"),
            "new/file": b"\0\1",
        },
    )
    committed(top, {"a": "before\n" + LINES, "other": "x\n"})
    write(top, {"a": "before\n" + LINES + "mine\n", "other": "dirty\n", "untracked": "u\n"})
    index = (top / ".git/index").read_bytes()
    repository, _ = opened(top)
    assert await apply_patch(repository, patch) == ("a", "crlf", "new/file")
    expected = "before\n" + LINES.replace("line 3\n", "agent\n") + "mine\n"
    assert (top / "a").read_text() == expected
    assert b"agent\r\n" in (top / "crlf").read_bytes()
    assert (top / "new/file").read_bytes() == b"\0\1"
    assert (top / "other").read_text() == "dirty\n"
    assert (top / ".git/index").read_bytes() == index
    assert await apply_patch(repository, patch) == ()  # all of it is there already


async def test_a_conflict_names_the_files_and_changes_nothing(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": LINES, "b": LINES})
    patch = await patch_of(
        top, {"a": "first\n" + LINES, "b": LINES.replace("line 3\n", "agent\n"), "new": "n\n"}
    )
    write(top, {"b": LINES.replace("line 3\n", "mine\n")})
    before = tree_of(top), git(top, "status", "--porcelain")
    repository, _ = opened(top)
    with pytest.raises(PatchConflict, match=r"conflicts with the checkout in b$"):
        await apply_patch(repository, patch)
    assert (tree_of(top), git(top, "status", "--porcelain")) == before


async def test_a_file_in_the_way_is_a_conflict(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n"})
    patch = await patch_of(top, {"new": "agent\n", "a": "2\n"})
    write(top, {"new": "mine\n"})
    repository, _ = opened(top)
    with pytest.raises(PatchConflict, match="new"):
        await apply_patch(repository, patch)
    assert (top / "a").read_text() == "1\n"
    assert (top / "new").read_text() == "mine\n"


async def test_garbage_and_bare_repositories_are_refused(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n"})
    repository, _ = opened(top)
    with pytest.raises(PatchConflict, match="no patch"):
        await apply_patch(repository, b"hello\n")
    git(tmp_path, "clone", "-q", "--bare", top, "b.git")
    bare, _ = opened(tmp_path / "b.git")
    with pytest.raises(UsageError, match="bare"):
        await apply_patch(bare, b"")
