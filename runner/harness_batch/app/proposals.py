"""Patches of a run become pull requests: each is checked again, put on a branch, and proposed.

This is the half that holds a token with write permission and no key of a model. It trusts nothing
of the run's folder but what it checks: the hash, the base, the size, the protected paths.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from attrs import Factory, evolve, frozen

from harness_batch.errors import GitError, PatchConflict
from harness_batch.github.api import Api
from harness_batch.github.pulls import Proposal, propose
from harness_batch.recipe.record import PatchRules
from harness_batch.store.folder import RunFolder
from harness_batch.workspace.patch_rules import judge_patch
from harness_batch.workspace.publish import Published, Remote, committed, push, scratch, sha256
from harness_batch.workspace.repository import Repository, resolve_base
from harness_batch_reports import markdown
from harness_batch_reports.records import BatchReport, Session

State = Literal["opened", "renewed", "refused", "duplicate"]
_ODD = re.compile(r"[^A-Za-z0-9_.=,-]+")
_LONGEST_BRANCH = 200
_LONGEST_TITLE = 200


@frozen(kw_only=True)
class Wishes:
    """How the pull requests are to look."""

    base: str
    """The branch that they are against."""
    prefix: str = "harness-batch/"
    labels: tuple[str, ...] = ()
    draft: bool = False
    rules: PatchRules = Factory(PatchRules)


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

    async def all(self) -> tuple[Proposed, ...]:
        """Of every session that passed with a patch. Raises: CodeHostError, GitError."""
        seen: dict[str, str] = {}
        changed = [s for s in self.report.sessions if s.patch is not None and s.patch.files]
        passed = [session for session in changed if session.status == "passed"]
        return tuple([await self._one(session, seen) for session in passed])

    async def _one(self, session: Session, seen: dict[str, str]) -> Proposed:
        """`seen`: patch ids that this call has proposed, with their items."""
        patch, refused = self._patch(session)
        if patch is None or session.base_sha is None:
            return Proposed(session.item_key, "refused", refused or "its base is not known")
        try:
            resolve_base(self.repository, session.base_sha)
        except GitError:
            told = f"its base {session.base_sha} is not in this clone: fetch more of the history"
            return Proposed(session.item_key, "refused", told)
        with scratch(self.repository, session.base_sha) as git:
            try:
                published = await committed(git, session.base_sha, patch)
            except PatchConflict as error:
                return Proposed(session.item_key, "refused", str(error))
            if (
                reason := judge_patch(published.entries, self.wishes.rules, len(patch))
            ) is not None:
                return Proposed(session.item_key, "refused", reason)
            if published.patch_id is not None:
                if (twin := seen.get(published.patch_id)) is not None:
                    return Proposed(session.item_key, "duplicate", f"the same change as {twin}")
                seen[published.patch_id] = session.item_key
            return await self._published(session, published)

    async def _published(self, session: Session, published: Published) -> Proposed:
        branch = branch_of(self.wishes.prefix, session.item_key)
        await push(published, self.remote, branch)
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

    def _patch(self, session: Session) -> tuple[bytes | None, str | None]:
        """(patch, None), or (None, why not)."""
        facts = session.patch
        if facts is None or session.folder is None:
            return None, "it has no patch"
        if facts.refused is not None:
            return None, f"the recipe's patch rules refuse it: {facts.refused}"
        path = self.folder.attempt(session.folder, session.attempts).patch
        if path.is_symlink() or not path.is_file():
            return None, f"{path} is not there"
        if path.stat().st_size > self.wishes.rules.max_bytes:
            return None, f"it has more than {self.wishes.rules.max_bytes} bytes"
        patch = path.read_bytes()
        if sha256(patch) != facts.sha256:
            return None, f"{path} is not the patch that the run recorded: its hash differs"
        return patch, None


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
    """The repository of the job, by the runner's variables."""
    server = (environ.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/")
    url = f"{server}/{environ.get('GITHUB_REPOSITORY', '')}.git"
    return Remote(url=url, token=environ.get("GITHUB_TOKEN", ""))


def _title(subject: str, session: Session) -> str:
    """One line; a mention in it stays text on GitHub's side (titles are never rendered)."""
    words = " ".join(subject.split()) or session.item_key
    return words[:_LONGEST_TITLE]
