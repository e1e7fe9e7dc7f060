"""Patches of a run that somebody else made, on their way to pull requests."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from attrs import evolve

import report_samples
from github_runner import GitHubServer, github_server
from harness_batch.app.proposals import Proposed, Publisher, Wishes, branch_of, remote_of
from harness_batch.errors import CodeHostError, GitError, UsageError
from harness_batch.github.api import Api
from harness_batch.recipe.record import PatchRules
from harness_batch.store.folder import RunFolder
from harness_batch.workspace.publish import sha256
from harness_batch.workspace.repository import discover
from harness_batch_reports.records import Session
from workspace_repos import git, write

TOKEN = "ghs_canary0123456789abcdef"
SAMPLE = next(s for s in report_samples.nightly().sessions if s.patch is not None)


class World:
    """A checkout, its remote, and a run's folder as an artifact brought it."""

    def __init__(self, folder: Path, server: GitHubServer) -> None:
        self.folder, self.server = folder, server
        self.checkout = folder / "checkout"
        write(self.checkout, {"NOTES.md": "In euros.\n", "docs/a.md": "A\n"})
        git(self.checkout, "init", "-q", "-b", "main")
        self.base = self.commit("base")
        self.remote = folder / "remote" / "shop" / "shop.git"
        self.remote.parent.mkdir(parents=True)
        git(folder, "clone", "-q", "--bare", self.checkout, self.remote)
        self.run = RunFolder(folder / "artifact")
        self.environ = {
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_REPOSITORY": "shop/shop",
            "GITHUB_API_URL": server.url,
            "GITHUB_SERVER_URL": f"file://{folder / 'remote'}",
        }

    def commit(self, message: str, files: Mapping[str, bytes | str] | None = None) -> str:
        write(self.checkout, files or {})
        git(self.checkout, "add", "-A", "-f")
        git(self.checkout, "commit", "-q", "--allow-empty", "-m", message)
        return git(self.checkout, "rev-parse", "HEAD").strip()

    def patch(self, files: Mapping[str, bytes | str], message: str = "Mend it") -> bytes:
        """A mail on the base; the checkout is at the base again."""
        self.commit(message, files)
        mail = git(self.checkout, "format-patch", "--stdout", "--binary", "-1")
        git(self.checkout, "reset", "-q", "--hard", "HEAD^")
        return mail.encode()

    def session(self, patch: bytes, key: str = "mend", folder: str = "mend") -> Session:
        """A session of the run that passed with the patch, which lies where it should."""
        place = self.run.path / "items" / folder / "attempt-1"
        place.mkdir(parents=True, exist_ok=True)
        (place / "change.patch").write_bytes(patch)
        assert SAMPLE.patch is not None
        facts = evolve(SAMPLE.patch, files=1, refused=None, sha256=sha256(patch))
        return evolve(
            SAMPLE,
            item_key=key,
            folder=folder,
            status="passed",
            attempts=1,
            base_sha=self.base,
            patch=facts,
        )

    async def proposed(self, *sessions: Session, wishes: Wishes | None = None) -> list[Proposed]:
        publisher = Publisher(
            folder=self.run,
            report=evolve(report_samples.nightly(), sessions=sessions),
            repository=discover(self.checkout),
            remote=remote_of(self.environ),
            api=Api.of(self.environ),
            wishes=wishes or Wishes(base="main"),
        )
        return [one async for one in publisher.each()]

    def branches(self) -> set[str]:
        return set(git(self.remote, "for-each-ref", "--format=%(refname:lstrip=2)").split())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with github_server() as server:
        yield World(tmp_path, server)


def states(proposed: list[Proposed]) -> list[str]:
    return [one.state for one in proposed]


@pytest.mark.parametrize("folder", ["../../outside", "..", "/etc", "", "a\0b", "linked", "loop"])
async def test_no_name_in_a_run_leads_to_a_patch_outside_of_its_folder(
    world: World, folder: str
) -> None:
    patch = world.patch({"NOTES.md": "In cents.\n"})
    good = world.session(patch)
    outside = world.folder / "outside" / "attempt-1"
    outside.mkdir(parents=True)
    (outside / "change.patch").write_bytes(patch)
    (world.run.path / "items" / "linked").symlink_to(outside.parent)
    (world.run.path / "items" / "loop").symlink_to("loop")
    before = sorted(world.folder.rglob("*"))
    (one,) = await world.proposed(evolve(good, folder=folder))
    assert (one.state, world.branches()) == ("refused", {"main"})
    assert sorted(world.folder.rglob("*")) == before


async def test_a_patch_that_is_a_pipe_is_refused_at_once(world: World) -> None:
    session = world.session(world.patch({"NOTES.md": "In cents.\n"}))
    place = world.run.path / "items" / "mend" / "attempt-1" / "change.patch"
    place.unlink()
    os.mkfifo(place)
    assert states(await world.proposed(session)) == ["refused"]


async def test_a_patch_that_was_changed_after_the_run_is_refused(world: World) -> None:
    session = world.session(world.patch({"NOTES.md": "In cents.\n"}))
    place = world.run.path / "items" / "mend" / "attempt-1" / "change.patch"
    place.write_bytes(place.read_bytes().replace(b"cents", b"coins"))
    (one,) = await world.proposed(session)
    assert (one.state, "its hash differs" in one.words) == ("refused", True)


@pytest.mark.parametrize(
    "base", ["--upload-pack=touch x", "HEAD", "main", "", None, "0" * 40, "refs/heads/main\n"]
)
async def test_a_base_is_a_commit_of_the_clone_and_nothing_else(
    world: World, base: str | None
) -> None:
    session = evolve(world.session(world.patch({"NOTES.md": "In cents.\n"})), base_sha=base)
    assert states(await world.proposed(session)) == ["refused"]


async def test_a_base_that_would_bring_other_commits_along_is_refused(world: World) -> None:
    git(world.checkout, "checkout", "-q", "-b", "unreviewed")
    base = world.commit("evil", {".github/workflows/evil.yml": "on: push\n"})
    patch = world.patch({"NOTES.md": "In cents.\n"})
    (one,) = await world.proposed(evolve(world.session(patch), base_sha=base))
    assert (one.state, one.words) == ("refused", f"its base {base} is not on main")
    assert world.branches() == {"main"}


async def test_a_base_that_the_branch_has_left_behind_is_fine(world: World) -> None:
    session = world.session(world.patch({"NOTES.md": "In cents.\n"}))
    world.commit("later", {"docs/a.md": "B\n"})
    git(world.checkout, "push", "-q", world.remote, "main")
    git(world.checkout, "reset", "-q", "--hard", world.base)
    assert states(await world.proposed(session)) == ["opened"]


async def test_an_item_cannot_be_called_as_a_branch_of_the_repository(world: World) -> None:
    session = world.session(world.patch({"NOTES.md": "In cents.\n"}), key="main")
    for prefix in ("", "/", "-f/", "a..b/", "a b/", "x" * 101, "a.lock/", "a@{b"):
        with pytest.raises(UsageError):
            Wishes(base="main", prefix=prefix)
    wishes = Wishes(base="harness-batch/main")
    git(world.remote, "branch", "harness-batch/main", "main")
    (one,) = await world.proposed(session, wishes=wishes)
    assert (one.state, one.words) == ("refused", "the branch harness-batch/main is taken")
    assert git(world.remote, "rev-parse", "harness-batch/main").strip() == world.base


async def test_two_sessions_of_one_item_do_not_overwrite_each_other(world: World) -> None:
    first = world.session(world.patch({"NOTES.md": "In cents.\n"}), folder="one")
    second = world.session(world.patch({"NOTES.md": "In pence.\n"}), folder="two")
    assert states(await world.proposed(first, second)) == ["opened", "refused"]


async def test_a_branch_to_which_somebody_has_committed_is_left_to_them(world: World) -> None:
    await world.proposed(world.session(world.patch({"NOTES.md": "In cents.\n"})))
    clone = world.folder / "clone"
    git(world.folder, "clone", "-q", "-b", "harness-batch/mend", world.remote, clone)
    write(clone, {"NOTES.md": "In cents, please.\n"})
    git(clone, "commit", "-q", "-am", "A reviewer's word")
    git(clone, "push", "-q", "origin", "HEAD")
    theirs = git(clone, "rev-parse", "HEAD")
    (one,) = await world.proposed(world.session(world.patch({"NOTES.md": "In pence.\n"})))
    assert (one.state, "somebody else has committed" in one.words) == ("kept", True)
    assert git(world.remote, "rev-parse", "harness-batch/mend") == theirs


async def test_a_new_change_of_an_item_renews_its_branch(world: World) -> None:
    await world.proposed(world.session(world.patch({"NOTES.md": "In cents.\n"})))
    (one,) = await world.proposed(world.session(world.patch({"NOTES.md": "In pence.\n"})))
    assert one.state == "renewed"
    shown = git(world.remote, "show", "harness-batch/mend:NOTES.md")
    assert shown == "In pence."


HEADS = {
    "no author": b"From: <>",
    "control characters": b"From: =?utf-8?q?A=00B=1B=5B31m=0Ax?= <a=00b@example.invalid>",
    "no UTF-8": b"From: \xff\xfe <\xff@example.invalid>",
    "only brackets": b"From: <<>> <<<>>>",
    "endless": b"From: " + b"A" * 100_000 + b" <a@example.invalid>",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
async def test_odd_authors_of_a_mail_end_nothing_and_the_committer_is_ours(
    world: World, head: bytes
) -> None:
    first, second, rest = world.patch({"NOTES.md": "In cents.\n"}).split(b"\n", 2)
    assert second.startswith(b"From: ")
    odd = world.session(b"\n".join((first, head, rest)))
    good = world.session(world.patch({"docs/a.md": "B\n"}), key="other", folder="other")
    proposed = await world.proposed(odd, good)
    assert proposed[1].state == "opened"
    for branch in world.branches() - {"main"}:
        assert "harness-batch" in git(world.remote, "log", "-1", "--format=%cn", branch)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Date: ", b"Date: the day before \x00 yesterday, "),
        (b"Subject: ", b"Subject: \x00"),
        (b"diff --git ", b"diff --gut "),
        (b"Mend it", b"Mend\x00it"),
    ],
)
async def test_a_broken_mail_is_refused_and_the_next_one_is_proposed(
    world: World, old: bytes, new: bytes
) -> None:
    broken = world.session(world.patch({"NOTES.md": "In cents.\n"}).replace(old, new))
    good = world.session(world.patch({"docs/a.md": "B\n"}), key="other", folder="other")
    proposed = await world.proposed(broken, good)
    assert proposed[0].state in ("refused", "opened")
    assert proposed[1].state == "opened"


def section(path: str, mode: str = "100644", text: str = "evil") -> bytes:
    head = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1 @@\n+{text}\n".encode()


FORBIDDEN = {
    "inside .git": (section(".git/hooks/post-checkout"), "invalid path"),
    "as .GIT": (section(".GIT/config"), "invalid path"),
    "climbing": (section("../outside"), "invalid path"),
    "a workflow": (section(".github/workflows/x.yml"), "is protected"),
    "a workflow in capitals": (section(".GITHUB/Workflows/x.yml"), "is protected"),
    "a link out": (
        section("link", "120000", "../../etc/passwd\n\\ No newline at end of file"),
        "links out of",
    ),
    "a link to .git": (
        section("link", "120000", ".git/config\n\\ No newline at end of file"),
        "links into .git",
    ),
    "a submodule": (
        section("sub", "160000", f"Subproject commit {'1' * 40}"),
        "changes a submodule",
    ),
    "a twin": (section("notes.md"), "differs from NOTES.md"),
}


@pytest.mark.parametrize(("change", "reason"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
async def test_patches_that_no_run_lets_through_are_refused(
    world: World, change: bytes, reason: str
) -> None:
    head, *_ = world.patch({"NOTES.md": "In cents.\n"}).partition(b"---\n")
    (one,) = await world.proposed(world.session(head + b"---\n\n" + change))
    assert (one.state, reason in one.words) == ("refused", True), one.words
    assert world.branches() == {"main"}


async def test_only_allowed_paths_and_sizes_are_proposed(world: World) -> None:
    session = world.session(world.patch({"NOTES.md": "In cents.\n"}))
    for rules in (PatchRules(allow=("docs/**",)), PatchRules(max_bytes=100)):
        told = await world.proposed(session, wishes=Wishes(base="main", rules=rules))
        assert states(told) == ["refused"]


async def test_a_refusal_of_the_code_host_is_told_with_its_words(world: World) -> None:
    world.server.answer = (403, {"message": "Resource not accessible by integration"})
    session = world.session(world.patch({"NOTES.md": "In cents.\n"}))
    with pytest.raises(CodeHostError, match="403 Resource not accessible by integration"):
        await world.proposed(session)


async def test_a_base_branch_that_the_remote_has_not_is_an_error_in_its_words(
    world: World,
) -> None:
    session = world.session(world.patch({"NOTES.md": "In cents.\n"}))
    with pytest.raises(GitError, match="nowhere"):
        await world.proposed(session, wishes=Wishes(base="nowhere"))


def test_no_two_items_share_a_branch_and_git_takes_every_name() -> None:
    keys = ["a", "a/b", "a-b", "a b", "a\nb", "-a", "..", "a..b", "a.lock", "ä", "@{x}", "x" * 400]
    names = [branch_of("harness-batch/", key) for key in keys]
    assert len(set(names)) == len(keys)
    for name in names:
        git(Path(), "check-ref-format", "--branch", name)


@pytest.mark.parametrize("url", ["http://evil.example", "ftp://x", "https//x", "ssh://x", "//["])
def test_a_token_goes_to_encrypted_places_only(url: str) -> None:
    environ = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": "shop/shop"}
    with pytest.raises(UsageError, match="GITHUB_API_URL"):
        Api.of({**environ, "GITHUB_API_URL": url})
    with pytest.raises(UsageError, match="GITHUB_SERVER_URL"):
        remote_of({**environ, "GITHUB_SERVER_URL": url})
