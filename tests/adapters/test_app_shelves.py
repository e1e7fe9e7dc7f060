"""What comes along with a repository is read from git's objects, never from the checkout."""

import os
from pathlib import Path

import pytest
from attrs import evolve

from harness_batch.agents.record import Agent
from harness_batch.app.options import Inputs
from harness_batch.app.shelves import Library
from harness_batch.config.record import Config
from harness_batch.limits import Limits
from harness_batch.plan.inputs import RepoBase
from harness_batch.plan.item import Item
from harness_batch.recipe.record import Recipe, WorkspaceWish
from harness_batch.workspace.repository import discover, resolve_base
from workspace_repos import committed, git, write

AGENT = "---\n---\nWork.\n"
FILES = {
    "AGENTS.md": "top",
    "CLAUDE.md": "not this one",
    "a/CLAUDE.md": "of a",
    "a/b/AGENTS.md": "of b",
    "docs/style.md": "style",
    "docs/huge.md": "x" * 100_000,
    ".harness/agents/mine.md": AGENT,
}


def library(top: Path, *instructions: str, **environ: str) -> Library:
    inputs = Inputs(recipes=(), cwd=top, environ={"HOME": "/nonexistent", **environ})
    config = Config(instructions=instructions)
    return Library(inputs, config, {str(top.resolve()): discover(top)})


def item(top: Path, path: str = ".") -> Item:
    sha = resolve_base(discover(top), "HEAD")
    wish = WorkspaceWish(path=path)
    return Item(
        key="k", folder="k", digest="d", params={}, matrix={}, models=(), rules=(),
        recipe=Recipe(file=Path("/r"), name="r", workspace=wish), agent=Agent(name="build"),
        limits=Limits(), repo=str(top.resolve()), ref="HEAD", base_sha=sha,
    )  # fmt: skip


def base(top: Path) -> RepoBase:
    one = item(top)
    return RepoBase(Path(one.repo), one.ref, one.base_sha)


def texts(top: Path, path: str = ".", *instructions: str, **environ: str) -> dict[str, str]:
    notes = library(top, *instructions, **environ).notes(item(top, path))
    return {note.path: note.text for note in notes}


def test_notes_are_those_of_the_commit_from_the_top_down(tmp_path: Path) -> None:
    top = committed(tmp_path / "repo", FILES)
    write(top, {"AGENTS.md": "tampered", "a/b/CLAUDE.md": "tampered"})
    assert texts(top, "a/b") == {
        "AGENTS.md": "top",
        "a/CLAUDE.md": "of a",
        "a/b/AGENTS.md": "of b",
    }
    assert list(texts(top)) == ["AGENTS.md"]


def test_configured_globs_match_files_of_the_commit_and_sizes_are_capped(tmp_path: Path) -> None:
    top = committed(tmp_path / "repo", FILES)
    write(top, {"docs/new.md": "uncommitted"})
    found = texts(top, ".", "docs/*.md")
    assert list(found) == ["AGENTS.md", "docs/huge.md", "docs/style.md"]
    assert found["docs/huge.md"].endswith("x\n(cut off here)")
    assert len(found["docs/huge.md"]) < 70_000


def test_links_are_not_read(tmp_path: Path) -> None:
    top = committed(tmp_path / "repo", {"secret.txt": "s", "docs/x.md": "x"})
    (top / "AGENTS.md").symlink_to("secret.txt")
    (top / "CLAUDE.md").symlink_to("/etc/passwd")
    (top / "docs" / "link.md").symlink_to("../secret.txt")
    (top / ".harness" / "agents").mkdir(parents=True)
    (top / ".harness" / "agents" / "a.md").symlink_to("/etc/passwd")
    committed(top, {})
    assert list(texts(top, ".", "docs/*.md")) == ["docs/x.md"]
    assert "a" not in library(top).equipment(base(top)).agents


def test_the_users_own_instructions_may_lie_anywhere(tmp_path: Path) -> None:
    top = committed(tmp_path / "repo", FILES)
    write(tmp_path, {"mine/a.md": "mine"})
    os.mkfifo(tmp_path / "mine" / "fifo.md")
    (tmp_path / "mine" / "b.md").symlink_to("a.md")
    notes = library(top, f"{tmp_path}/mine/*.md", f"{tmp_path}/none.md").notes(item(top))
    assert [(note.path, note.text, note.mine) for note in notes[:2]] == [
        (f"{tmp_path}/mine/a.md", "mine", True),
        (f"{tmp_path}/mine/b.md", "mine", True),
    ]
    assert [note.path for note in notes[2:]] == ["AGENTS.md"]


def test_odd_names_and_an_empty_repository_are_nothing_special(tmp_path: Path) -> None:
    name = '.harness/agents/a"\n.md'
    top = committed(tmp_path / "repo", {"docs/:(top)*\n.md": "odd", "docs/\udcff.md": "x"})
    assert len(texts(top, ".", "docs/*")) == 2
    committed(top, {name: AGENT})
    with pytest.raises(Exception, match="is no name"):
        library(top).equipment(base(top))
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    empty = tmp_path / "empty"
    one = evolve(item(empty), base_sha=None)
    assert library(empty).notes(one) == ()
    assert "build" in library(empty).equipment(RepoBase(Path(one.repo), "HEAD", None)).agents


def review(tmp_path: Path) -> Path:
    """A checkout of a change that brings its own agents and notes, and what it is against."""
    top = committed(tmp_path / "repo", {"AGENTS.md": "reviewed"})
    git(top, "update-ref", "refs/remotes/origin/main", "HEAD")
    return committed(top, {"AGENTS.md": "hostile", ".harness/agents/hostile.md": AGENT})


@pytest.mark.parametrize(
    "environ", [{"GITHUB_BASE_REF": "main"}, {"SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main"}]
)
def test_a_change_under_review_does_not_bring_its_own(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    top = review(tmp_path)
    assert texts(top, **environ) == {"AGENTS.md": "reviewed"}
    assert "hostile" not in library(top, **environ).equipment(base(top)).agents
    assert texts(top) == {"AGENTS.md": "hostile"}
    assert "hostile" in library(top).equipment(base(top)).agents


def test_nothing_is_taken_where_the_reviews_base_is_not_there(tmp_path: Path) -> None:
    top = review(tmp_path)
    shelves = library(top, GITHUB_BASE_REF="release")
    assert shelves.notes(item(top)) == ()
    (warning,) = shelves.warnings
    assert "are left out: 'origin/release' names no commit" in warning.message
