"""A session's tree: made from the pinned commit, of use to the agent's git, gone at the end."""

import os
from pathlib import Path

import pytest
import trio
from attrs import evolve

from harness_batch.errors import GitError, HostError, Unsupported, UsageError
from harness_batch.workspace.owner import worktrees_folder
from harness_batch.workspace.worktree import open_workspace
from workspace_repos import COMMIT, IN_PLACE, WORKTREE, applied, committed, git, opened, tree_of


def session(tmp_path: Path, name: str = "ses_1") -> Path:
    return worktrees_folder(tmp_path / "cache") / "run_1" / name


async def test_the_tree_is_the_commit_and_the_checkout_keeps_its_bytes(tmp_path: Path) -> None:
    top = committed(
        tmp_path / "r", {"a.txt": "1\n", "bin/x": "#!/bin/sh\n", "ü b/c": b"\xef\xbb\xbf\r\n"}
    )
    (top / "bin/x").chmod(0o755)
    (top / "link").symlink_to("a.txt")
    committed(top, {})
    expected = tree_of(top)
    (top / "a.txt").write_text("dirty")
    (top / "untracked").write_text("mine")
    before = tree_of(top), git(top, "status", "--porcelain"), (top / ".git/index").read_bytes()
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        assert tree_of(workspace.root) == expected
        (workspace.root / "a.txt").write_text("agent")
        assert await workspace.capture(COMMIT) is not None
    after = tree_of(top), git(top, "status", "--porcelain"), (top / ".git/index").read_bytes()
    assert after == before
    assert not list((tmp_path / "cache").rglob("ses_1"))
    assert not workspace.tmp.exists()


async def test_the_agents_git_works_and_reaches_nothing_of_the_users(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a.txt": "1\n"})
    git(top, "tag", "v1.0")
    git(top, "remote", "add", "origin", "https://user:secret@example.org/x.git")
    git(top, "config", "http.extraheader", "secret")
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        root = workspace.root
        assert git(root, "status", "--porcelain") == ""
        assert git(root, "describe", "--tags") == "v1.0"
        (root / "a.txt").write_text("2\n")
        (root / "new").write_text("n")
        assert git(root, "diff", "--stat", "main")
        git(root, "stash", "-u")
        git(root, "stash", "pop")
        git(root, "checkout", "-q", "-b", "work")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "mine")
        assert len(git(root, "log", "--format=%H").split()) == 2
        assert git(root, "remote") == ""
        assert "secret" not in git(root, "config", "--list")
        captured = await workspace.capture(COMMIT)
        assert captured is not None
        assert captured.paths == ("a.txt", "new")  # commits included
    assert git(top, "for-each-ref", "--format=%(refname)") == "refs/heads/main\nrefs/tags/v1.0"
    assert git(top, "log", "--format=%H") == base


async def test_a_repository_without_a_commit_gives_an_empty_tree(tmp_path: Path) -> None:
    top = tmp_path / "r"
    top.mkdir()
    git(top, "init", "-q")
    (top / "mine").write_text("not yours")
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        assert tree_of(workspace.root) == {}
        (workspace.root / "first").write_text("1\n")
        assert git(workspace.root, "status", "--porcelain") == "?? first"
        captured = await workspace.capture(COMMIT)
    assert captured is not None
    assert captured.applies
    git(tmp_path, "init", "-q", "fresh")
    git(tmp_path / "fresh", "am", "-q", stdin=captured.patch)
    assert tree_of(tmp_path / "fresh") == {"first": ("file", b"1\n")}


@pytest.mark.parametrize("kind", ["shallow", "shared", "bare", "linked", "sha256"])
async def test_every_kind_of_repository_serves_as_a_source(tmp_path: Path, kind: str) -> None:
    first = tmp_path / "first"
    if kind == "sha256":
        first.mkdir()
        git(first, "init", "-q", "-b", "main", "--object-format=sha256")
    committed(first, {"a": "1\n"})
    committed(first, {"a": "2\n", "b": "x\n"})
    source = tmp_path / 'so"ur\\ce #1'
    match kind:
        case "shallow":
            git(tmp_path, "clone", "-q", "--depth", "1", f"file://{first}", source)
        case "shared":
            git(tmp_path, "clone", "-q", "--shared", first, source)
        case "bare":
            git(tmp_path, "clone", "-q", "--bare", first, source)
        case "linked":
            git(first, "worktree", "add", "-q", source, "-b", "other")
        case _:
            source = first
    repository, base = opened(source)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        assert tree_of(workspace.root) == {"a": ("file", b"2\n"), "b": ("file", b"x\n")}
        git(workspace.root, "log")
        (workspace.root / "b").unlink()
        captured = await workspace.capture(COMMIT)
    assert captured is not None
    assert captured.applies
    assert applied(first, tmp_path / "clone", captured.patch) == {"a": ("file", b"2\n")}


async def test_submodules_stay_empty_and_are_refused_when_wished_for(tmp_path: Path) -> None:
    part = committed(tmp_path / "part", {"lib.c": "x"})
    top = committed(tmp_path / "super", {"main.c": "y"})
    git(top, "submodule", "--quiet", "add", part, "libs/part")
    git(top, "commit", "-q", "-m", "with a part")
    repository, base = opened(top)
    wish = evolve(WORKTREE, submodules=True)
    with pytest.raises(Unsupported, match="submodules"):
        async with open_workspace(
            repository=repository, base_sha=base, wish=wish, folder=session(tmp_path)
        ):
            pass
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        assert list((workspace.root / "libs/part").iterdir()) == []
        assert git(workspace.root, "status", "--porcelain") == ""
        assert await workspace.capture(COMMIT) is None
        (workspace.root / "libs/part").rmdir()
        assert await workspace.capture(COMMIT) is None
        (workspace.root / "libs/part").mkdir()
        (workspace.root / "libs/part/lost").write_text("1")
        (workspace.root / "main.c").write_text("z")
        captured = await workspace.capture(COMMIT)
    assert captured is not None
    assert captured.paths == ("main.c",)
    assert any("libs/part is a submodule" in notice for notice in captured.notices)


async def test_filters_and_line_ends_of_the_users_configuration_are_not_run(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    top = committed(tmp_path / "r", {".gitattributes": "*.bin filter=lfs\n", "x.bin": pointer})
    git(top, "config", "core.autocrlf", "true")
    git(top, "config", "filter.lfs.smudge", f"touch {tmp_path}/ran")
    git(top, "config", "filter.lfs.required", "true")
    git(top, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "post-checkout").chmod(0o755)
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
    ) as workspace:
        assert (workspace.root / "x.bin").read_text() == pointer
        assert await workspace.capture(COMMIT) is None
    assert not (tmp_path / "ran").exists()


async def test_sixteen_sessions_on_one_repository_do_not_meet(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {f"d{n}/f": f"{n}\n" for n in range(40)})
    repository, base = opened(top)
    patches: dict[int, bytes] = {}

    async def work(number: int) -> None:
        async with open_workspace(
            repository=repository,
            base_sha=base,
            wish=WORKTREE,
            folder=session(tmp_path, f"ses_{number}"),
        ) as workspace:
            (workspace.root / "d0/f").write_text(f"session {number}\n")
            captured = await workspace.capture(COMMIT)
            assert captured is not None
            assert captured.paths == ("d0/f",)
            patches[number] = captured.patch

    async with trio.open_nursery() as nursery:
        for number in range(16):
            nursery.start_soon(work, number)
    assert all(f"+session {number}\n".encode() in patch for number, patch in patches.items())
    assert len(patches) == 16
    assert list(worktrees_folder(tmp_path / "cache").glob("*/*")) == []


async def test_the_folder_goes_after_errors_and_cancellation_whatever_is_in_it(
    tmp_path: Path,
) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    repository, base = opened(top)
    with trio.CancelScope() as scope:
        async with open_workspace(
            repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
        ) as workspace:
            deep = workspace.root
            fd = os.open(deep, os.O_RDONLY)
            for _ in range(1500):
                os.mkdir("deep", dir_fd=fd)
                lower = os.open("deep", os.O_RDONLY, dir_fd=fd)
                os.close(fd)
                fd = lower
            os.close(fd)
            closed = workspace.root / "closed"
            closed.mkdir()
            (closed / "file").write_text("x")
            (closed / "file").chmod(0)
            closed.chmod(0)
            (workspace.root / "out").symlink_to(top)
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert not session(tmp_path).exists()
    assert (top / "a").read_text() == "1"


async def test_a_kept_workspace_stays(tmp_path: Path) -> None:
    repository, base = opened(committed(tmp_path / "r", {"a": "1"}))
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path), keep=True
    ) as workspace:
        (workspace.root / "b").write_text("2")
    assert tree_of(workspace.root) == {"a": ("file", b"1"), "b": ("file", b"2")}
    assert git(workspace.root, "status", "--porcelain") == "?? b"


async def test_a_partial_clone_and_a_full_disk_are_told_apart(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    git(top, "config", "uploadpack.allowFilter", "true")
    args = ("--filter=blob:none", "--no-checkout", f"file://{top}", "partial")
    git(tmp_path, "clone", "-q", *args)
    repository, base = opened(tmp_path / "partial")
    with pytest.raises(GitError, match="partial clone without the files"):
        async with open_workspace(
            repository=repository, base_sha=base, wish=WORKTREE, folder=session(tmp_path)
        ):
            pass
    with pytest.raises(HostError, match="/proc/nowhere"):
        async with open_workspace(
            repository=repository, base_sha=base, wish=WORKTREE, folder=Path("/proc/nowhere/s")
        ):
            pass


@pytest.mark.parametrize("path", ["..", "/etc", "nowhere", "out"])
async def test_a_working_folder_must_lie_in_the_tree(tmp_path: Path, path: str) -> None:
    top = committed(tmp_path / "r", {"a/b": "1"})
    (top / "out").symlink_to("/tmp")
    repository, base = opened(committed(top, {}))
    wish = evolve(WORKTREE, path=path)
    with pytest.raises(GitError, match=r"workspace\.path"):
        async with open_workspace(
            repository=repository, base_sha=base, wish=wish, folder=session(tmp_path)
        ):
            pass
    assert not session(tmp_path).exists()


async def test_in_place_the_patch_holds_only_what_the_agent_changed(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n", "b": "1\n", "gone": "1\n"})
    (top / "a").write_text("dirty\n")
    (top / "mine").write_text("untracked\n")
    (top / "gone").unlink()
    committed(top / "vendored", {"big": "x"})
    git_before = {p: p.read_bytes() for p in (top / ".git").rglob("*") if p.is_file()}
    repository, base = opened(top)
    async with open_workspace(
        repository=repository, base_sha=base, wish=IN_PLACE, folder=session(tmp_path)
    ) as workspace:
        assert workspace.root == top.resolve()
        assert await workspace.capture(COMMIT) is None
        (top / "b").write_text("agent\n")
        (top / "a").write_text("dirty\nagent\n")
        (top / "vendored/big").write_text("y")
        captured = await workspace.capture(COMMIT)
    assert captured is not None
    assert captured.paths == ("a", "b")
    assert b" dirty\n+agent\n" in captured.patch
    assert captured.applies
    assert (top / "b").read_text() == "agent\n"
    assert git_before == {p: p.read_bytes() for p in (top / ".git").rglob("*") if p.is_file()}
    assert not session(tmp_path).exists()


async def test_in_place_needs_a_checkout_of_the_commit(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1\n"})
    first = git(top, "rev-parse", "HEAD")
    committed(top, {"a": "2\n"})
    git(tmp_path, "clone", "-q", "--bare", top, "b.git")
    for source, base in ((top, first), (tmp_path / "b.git", first)):
        with pytest.raises(UsageError, match="in-place"):
            async with open_workspace(
                repository=opened(source)[0], base_sha=base, wish=IN_PLACE, folder=session(tmp_path)
            ):
                pass
