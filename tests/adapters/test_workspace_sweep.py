"""What dead runs left is cleaned up by the next one; what is alive or wanted is not touched."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_batch.errors import GitError
from harness_batch.workspace.owner import sweep_stale, worktrees_folder
from harness_batch.workspace.removal import remove_folder
from harness_batch.workspace.worktree import open_workspace
from workspace_processes import gone
from workspace_repos import COMMIT, WORKTREE, committed, git, opened

RUNNER = """
import os, sys, trio
from pathlib import Path
from workspace_repos import WORKTREE, opened
from harness_batch.workspace.worktree import open_workspace
from harness_batch.workspace.owner import worktrees_folder
async def main(top, cache, kept):
    repository, base = opened(Path(top))
    folder = worktrees_folder(Path(cache)) / "run_dead" / "ses_1"
    async with open_workspace(repository=repository, base_sha=base, wish=WORKTREE,
                              folder=folder, keep=kept == "yes") as w:
        (w.root / "work").write_text("half done")
        (w.tmp / "scratch").write_text("x")
        print(w.tmp, flush=True)
        await trio.sleep_forever()
trio.run(main, *sys.argv[1:])
"""


def start_runner(top: Path, cache: Path, kept: str = "no") -> tuple[subprocess.Popen[str], Path]:
    roots = (Path(__file__).parents[1], Path(__file__).parents[2] / "runner")
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, top, cache, kept],
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(map(str, roots))},
    )
    assert runner.stdout is not None
    return runner, Path(runner.stdout.readline().strip())


async def test_a_killed_runners_folder_is_removed_and_a_living_ones_stays(tmp_path: Path) -> None:
    top, cache = committed(tmp_path / "r", {"a": "1"}), tmp_path / "cache"
    runner, tmp = start_runner(top, cache)
    folder = worktrees_folder(cache) / "run_dead" / "ses_1"
    with runner:
        assert await sweep_stale(cache) == ()
        assert (folder / "tree/work").read_text() == "half done"
        repository, base = opened(top)
        with pytest.raises(GitError, match="in use"):
            async with open_workspace(
                repository=repository, base_sha=base, wish=WORKTREE, folder=folder
            ):
                pass
        runner.kill()
    await gone(runner.pid)
    assert tmp.is_dir()
    assert await sweep_stale(cache) == ()
    assert not folder.parent.exists()
    assert not tmp.exists()
    assert git(top, "status", "--porcelain") == ""
    assert git(top, "worktree", "list").count("\n") == 0


async def test_a_folder_that_is_to_be_kept_is_exempt(
    tmp_path: Path,
) -> None:
    top, cache = committed(tmp_path / "r", {"a": "1"}), tmp_path / "cache"
    runner, tmp = start_runner(top, cache, "yes")
    with runner:
        runner.kill()
    await gone(runner.pid)
    assert await sweep_stale(cache) == ()
    folder = worktrees_folder(cache) / "run_dead" / "ses_1"
    assert (folder / "tree/work").exists()
    remove_folder(tmp)


async def test_the_sessions_own_sweep_leaves_it_alone(tmp_path: Path) -> None:
    repository, base = opened(committed(tmp_path / "r", {"a": "1"}))
    folder = worktrees_folder(tmp_path / "cache") / "run_1" / "ses_1"
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=folder
    ) as workspace:
        assert await sweep_stale(tmp_path / "cache") == ()
        assert await workspace.capture(COMMIT) is None
        owner = json.loads((folder / "owner.json").read_text())
    assert owner["run_id"] == "run_1"
    assert owner["pid"] == os.getpid()


async def test_a_dead_runners_folder_makes_place_for_the_same_session(tmp_path: Path) -> None:
    top, cache = committed(tmp_path / "r", {"a": "1"}), tmp_path / "cache"
    runner, _ = start_runner(top, cache)
    with runner:
        runner.kill()
    await gone(runner.pid)
    repository, base = opened(top)
    folder = worktrees_folder(cache) / "run_dead" / "ses_1"
    async with open_workspace(
        repository=repository, base_sha=base, wish=WORKTREE, folder=folder
    ) as workspace:
        assert not (workspace.root / "work").exists()


async def test_an_owner_file_cannot_make_the_sweep_remove_other_folders(tmp_path: Path) -> None:
    precious = tmp_path / "hb-precious"
    precious.mkdir()
    session = worktrees_folder(tmp_path) / "run_1" / "ses_1"
    session.mkdir(parents=True)
    owner = {"run_id": "run_1", "pid": 1, "started": "never", "tmp": str(precious), "exempt": False}
    (session / "owner.json").write_text(json.dumps(owner))
    (session / "out").symlink_to(precious)
    assert await sweep_stale(tmp_path) == ()
    assert precious.is_dir()
    assert not session.exists()


async def test_there_may_be_nothing_to_sweep(tmp_path: Path) -> None:
    assert await sweep_stale(tmp_path / "nowhere") == ()


def test_a_folder_that_was_never_there_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert remove_folder(tmp_path / "nothing") == ()
    assert remove_folder(tmp_path / "link") == ()
    assert tmp_path.is_dir()
