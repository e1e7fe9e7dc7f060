"""Patches of a run become pull requests: each is checked again, put on a branch, and proposed.

This is the half that holds a token with write permission and no key of a model. It trusts nothing
of the run's folder but what it checks: the hash, the base, the size, the protected paths.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from attrs import Factory, evolve, frozen

from harness_batch.errors import GitError, PatchConflict, UsageError
from harness_batch.github.api import Api, refuse_open
from harness_batch.github.pulls import Proposal, propose
from harness_batch.recipe.record import PatchRules
from harness_batch.store.folder import RunFolder
from harness_batch.workspace.patch_rules import judge_patch
from harness_batch.workspace.publish import (
    WAYS_OUT,
    Published,
    Remote,
    committed,
    is_on,
    push,
    scratch,
    sha256,
)
from harness_batch.workspace.repository import Repository, resolve_base
from harness_batch_reports import markdown
from harness_batch_reports.hostile import one_line
from harness_batch_reports.records import BatchReport, Session

State = Literal["opened", "renewed", "refused", "duplicate", "kept"]
"""kept: the branch has commits of somebody else, and is left to them."""
_ODD: Final = re.compile(r"[^A-Za-z0-9_.=,-]+")
_SHA: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NO_BRANCH: Final = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|^[-/.]|^$|\.$"
)
"""What `git check-ref-format --branch` refuses, anywhere in a name."""
_LONGEST_BRANCH: Final = 200
_LONGEST_PREFIX: Final = 100
_LONGEST_TITLE: Final = 200


@frozen(kw_only=True)
class Wishes:
    """How the pull requests are to look."""

    base: str
    """The branch that they are against."""
    prefix: str = "harness-batch/"
    labels: tuple[str, ...] = ()
    draft: bool = False
    rules: PatchRules = Factory(PatchRules)

    def __attrs_post_init__(self) -> None:
        """Raises: UsageError for names that git does not take.

        Without a prefix an item could be called as the repository's own branches are.
        """
        if _NO_BRANCH.search(self.base) or self.base.endswith("/"):
            raise UsageError(f"--base {self.base!r} is no name of a branch")
        if _NO_BRANCH.search(self.prefix) or len(self.prefix) > _LONGEST_PREFIX:
            raise UsageError(
                f"--branch-prefix {self.prefix!r}: write what names of branches can begin with, "
                f"e.g. harness-batch/, at most {_LONGEST_PREFIX} characters"
            )


@frozen
class Proposed:
    """What became of one session's patch."""

    item_key: str
    state: State
    words: str
    """The pull request's URL, or why there is none."""


@frozen(kw_only=True)
class Publisher:
    """Proposes the patches of one run."""

    folder: RunFolder
    report: BatchReport
    repository: Repository
    remote: Remote
    api: Api
    wishes: Wishes

    async def each(self) -> AsyncIterator[Proposed]:
        """Of every session that passed with a patch, as it is done.

        Raises: CodeHostError, GitError.
        """
        seen: dict[str, str] = {}
        changed = [s for s in self.report.sessions if s.patch is not None and s.patch.files]
        for session in changed:
            if session.status == "passed":
                try:
                    yield await self._one(session, seen)
                except PatchConflict as error:
                    yield Proposed(session.item_key, "refused", str(error))

    async def _one(self, session: Session, seen: dict[str, str]) -> Proposed:
        """`seen`: patch ids and branches that this call has proposed, with their items."""
        refused, branch = self._refused(session), branch_of(self.wishes.prefix, session.item_key)
        if refused is None and branch in (self.wishes.base, *seen):
            refused = f"the branch {branch} is taken"
        if refused is not None:
            return Proposed(session.item_key, "refused", refused)
        base, patch = session.base_sha or "", self._place(session).read_bytes()
        with scratch(self.repository, base) as git:
            if not await is_on(git, self.remote, self.wishes.base, base):
                told = f"its base {base} is not on {self.wishes.base}"
                return Proposed(session.item_key, "refused", told)
            published = await committed(git, base, patch)
            reason = judge_patch(published.entries, self.wishes.rules, len(patch))
            if reason is not None:
                return Proposed(session.item_key, "refused", reason)
            same = published.patch_id or published.tree
            if (twin := seen.get(same)) is not None:
                return Proposed(session.item_key, "duplicate", f"the same change as {twin}")
            seen |= {same: session.item_key, branch: session.item_key}
            return await self._published(session, published, branch)

    async def _published(self, session: Session, published: Published, branch: str) -> Proposed:
        if await push(published, self.remote, branch) == "foreign":
            told = f"somebody else has committed to {branch}: merge it or delete it"
            return Proposed(session.item_key, "kept", told)
        pull = propose(
            self.api,
            Proposal(
                branch=branch,
                base=self.wishes.base,
                title=_title(published.subject, session),
                body=markdown.comment(alone(self.report, [session])),
                labels=self.wishes.labels,
                draft=self.wishes.draft,
            ),
        )
        return Proposed(session.item_key, "opened" if pull.created else "renewed", pull.url)

    def _refused(self, session: Session) -> str | None:
        """Why what the folder holds for a session cannot be proposed."""
        facts = session.patch
        if facts is None or session.folder is None:
            return "it has no patch"
        if facts.refused is not None:
            return f"the recipe's patch rules refuse it: {facts.refused}"
        if not _SHA.fullmatch(session.base_sha or ""):
            return "its base is not known"
        if not self._has(session.base_sha or ""):
            return f"its base {session.base_sha} is not in this clone: fetch more of the history"
        return self._unlike(self._place(session), facts.sha256)

    def _unlike(self, path: Path, digest: str | None) -> str | None:
        """Why the file is not the patch that was recorded."""
        if not _is_plain(path, self.folder.path):
            return f"{path} is not there, or no plain file"
        if path.stat().st_size > self.wishes.rules.max_bytes:
            return f"it has more than {self.wishes.rules.max_bytes} bytes"
        if sha256(path.read_bytes()) != digest:
            return f"{path} is not the patch that the run recorded: its hash differs"
        return None

    def _place(self, session: Session) -> Path:
        """Where the patch should lie. Nothing is made: the folder is somebody else's."""
        attempt = f"attempt-{session.attempts}"
        return self.folder.path / "items" / (session.folder or "") / attempt / "change.patch"

    def _has(self, commit: str) -> bool:
        with suppress(GitError):
            return resolve_base(self.repository, commit) == commit
        return False


def _is_plain(path: Path, folder: Path) -> bool:
    """Whether it is a file of the folder, and no link leads to it: names in a run may lie."""
    try:
        inside = path.resolve().relative_to(folder.resolve())
        return folder / inside == path and path.is_file()
    except (OSError, ValueError, RuntimeError):  # what a NUL in a name, or links in a circle, say
        return False


def alone(report: BatchReport, sessions: Iterable[Session]) -> BatchReport:
    """The report as if the run had had these sessions only."""
    kept = tuple(sessions)
    ids = {session.session_id for session in kept}
    return evolve(
        report,
        sessions=kept,
        denials=tuple(denial for denial in report.denials if denial.session_id in ids),
        notices=tuple(n for n in report.notices if n.session_id is None or n.session_id in ids),
    )


def by_recipe(report: BatchReport) -> Iterator[tuple[str, BatchReport]]:
    """The report of each recipe of a run."""
    for recipe in dict.fromkeys(session.recipe for session in report.sessions):
        yield recipe, alone(report, [s for s in report.sessions if s.recipe == recipe])


def branch_of(prefix: str, item_key: str) -> str:
    """The branch of an item, the same every night; a name that git takes.

    What had to be replaced in the key makes way for a piece of its hash, so that two keys never
    share a branch.
    """
    name = _ODD.sub("-", item_key.replace("/", "-")).strip("-.")
    name = re.sub(r"\.{2,}", ".", name).removesuffix(".lock")
    if name != item_key or len(prefix + name) > _LONGEST_BRANCH:
        name = f"{name[: _LONGEST_BRANCH - len(prefix) - 9]}-{sha256(item_key.encode())[:8]}"
    return prefix + name


def remote_of(environ: Mapping[str, str]) -> Remote:
    """The repository of the job, by the runner's variables. Raises: UsageError."""
    server = (environ.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/")
    url = f"{server}/{environ.get('GITHUB_REPOSITORY', '')}.git"
    refuse_open("GITHUB_SERVER_URL", server, "file")
    way = {name: environ[name] for name in WAYS_OUT if name in environ}
    return Remote(url=url, token=environ.get("GITHUB_TOKEN", ""), way=way)


def _title(subject: str, session: Session) -> str:
    """One line; a mention in it stays text on GitHub's side (titles are never rendered)."""
    return one_line(subject, _LONGEST_TITLE) or one_line(session.item_key, _LONGEST_TITLE)
