"""Finding the user's repository and the commit a session starts from."""

from pathlib import Path

import pytest

from harness_batch.errors import GitError
from harness_batch.workspace.repository import discover, resolve_base
from workspace_repos import committed, git


def test_a_folder_below_the_top_level_finds_it(tmp_path: Path) -> None:
    top = committed(tmp_path / "spaß und\nmehr" / "re po", {"src/a/b.txt": "x"})
    repository = discover(top / "src" / "a")
    assert repository.path == top.resolve()
    assert resolve_base(repository, "HEAD") == git(top, "rev-parse", "HEAD")


def test_no_repository_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not in a git repository"):
        discover(tmp_path)
    with pytest.raises(GitError, match="does not exist"):
        discover(tmp_path / "nowhere")


def test_an_unknown_ref_names_its_neighbours(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    git(top, "branch", "feature/login")
    with pytest.raises(GitError, match="did you mean feature/login"):
        resolve_base(discover(top), "feature/logn")
    for odd in ("--help", "", "HEAD^{tree}", "a..b"):
        with pytest.raises(GitError, match="names no commit"):
            resolve_base(discover(top), odd)


def test_a_repository_without_a_commit_starts_from_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    repository = discover(tmp_path)
    assert resolve_base(repository, "HEAD") is None
    with pytest.raises(GitError):
        resolve_base(repository, "main")


def test_detached_heads_tags_and_shortened_commits_resolve(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    first = git(top, "rev-parse", "HEAD")
    git(top, "tag", "-a", "-m", "one", "v1")
    committed(top, {"a": "2"})
    git(top, "checkout", "-q", "--detach", first)
    repository = discover(top)
    assert resolve_base(repository, "HEAD") == first
    assert resolve_base(repository, "v1") == first
    assert resolve_base(repository, first[:9]) == first


def test_a_linked_worktree_is_a_repository_with_a_common_folder(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    git(top, "worktree", "add", "-q", "-b", "other", tmp_path / "linked")
    repository = discover(tmp_path / "linked")
    assert repository.path == (tmp_path / "linked").resolve()
    assert repository.common_dir == (top / ".git").resolve()
    assert resolve_base(repository, "HEAD") == git(top, "rev-parse", "other")


def test_bare_repositories_are_told_from_the_inside_of_a_git_directory(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    git(tmp_path, "clone", "-q", "--bare", top, "b.git")
    assert discover(tmp_path / "b.git").bare
    with pytest.raises(GitError, match="inside of a git directory"):
        discover(top / ".git")


def test_a_shallow_clone_says_so_when_a_commit_is_missing(tmp_path: Path) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    first = git(top, "rev-parse", "HEAD")
    committed(top, {"a": "2"})
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{top}", "s")
    repository = discover(tmp_path / "s")
    assert repository.shallow
    with pytest.raises(GitError, match="shallow"):
        resolve_base(repository, first)


def test_variables_and_configuration_of_a_ci_step_do_not_get_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = committed(tmp_path / "r", {"a": "1"})
    other = committed(tmp_path / "other", {"b": "2"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nonexistent/index")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare=true'")
    repository = discover(top)
    assert resolve_base(repository, "HEAD") != resolve_base(discover(other), "HEAD")
