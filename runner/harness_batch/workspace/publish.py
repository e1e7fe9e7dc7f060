"""A session's patch as a commit on its base, and that commit on a branch of a remote.

All of it in a throw-away git directory that borrows the repository's objects: the checkout, its
index, its hooks and its configuration are not touched, and none of them is obeyed.
"""

import base64
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from attrs import Factory, evolve, field, frozen

from harness_batch.errors import GitError, PatchConflict
from harness_batch.workspace.git import SETTINGS, Git
from harness_batch.workspace.gitdir import make_git_dir
from harness_batch.workspace.patch import AUTHOR_EMAIL, AUTHOR_NAME, DIFF, read_listing, twins_of
from harness_batch.workspace.patch_rules import PatchEntry
from harness_batch.workspace.repository import Repository

WAYS_OUT: Final = (
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
    *("no_proxy", "NO_PROXY", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
"""Variables that say how this machine reaches another one: git's calls to the remote have them."""
_LINK = 0o120000
_LONGEST_LINK = 4096
_LONGEST_NAME = 200
_COMMITTER = {"GIT_COMMITTER_NAME": AUTHOR_NAME, "GIT_COMMITTER_EMAIL": AUTHOR_EMAIL}
"""Of every commit made here, whoever its author is: so branches of ours can be told from others."""


@frozen(kw_only=True)
class Published:
    """A commit that is ready to be pushed."""

    git: Git = field(repr=False)
    commit: str
    tree: str
    subject: str
    """The first line of its message."""
    entries: tuple[PatchEntry, ...]
    """Every changed path, for `judge_patch`."""
    patch_id: str | None


@frozen(kw_only=True)
class Remote:
    """Where a branch is pushed, and with what right. The token is in no argument vector."""

    url: str
    token: str = field(repr=False)
    way: Mapping[str, str] = Factory(dict)
    """Those of WAYS_OUT that are set."""

    def reached_by(self, git: Git) -> Git:
        """The same git with the right and the way to talk to the remote."""
        return evolve(git, env={**git.env, **self._environment()})

    def _environment(self) -> dict[str, str]:
        """Git's configuration for one call. A redirect would take the token somewhere else."""
        secret = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        header = {"http.extraHeader": f"Authorization: Basic {secret}"} if self.token else {}
        chosen = {**SETTINGS, "http.followRedirects": "false", **header}
        return {
            **self.way,
            "GIT_ALLOW_PROTOCOL": "https:http:file",
            "GIT_CONFIG_COUNT": str(len(chosen)),
            **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(chosen)},
            **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(chosen.values())},
        }


@contextmanager
def scratch(repository: Repository, base_sha: str) -> Iterator[Git]:
    """A git directory at the base, for one patch."""
    with TemporaryDirectory(prefix="hb-publish-") as folder:
        git_dir = make_git_dir(Path(folder, "git"), repository, base_sha)
        yield Git(git_dir=git_dir)


async def committed(git: Git, base_sha: str, patch: bytes) -> Published:
    """The patch on its base as a commit, with the patch's own message, date and author.

    The same patch gives the same commit. Raises: PatchConflict when it does not apply, or is no
    mail that git can make a commit of.
    """
    try:
        message, author = await _mail(git, patch)
        await git("read-tree", base_sha)
        await git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch)
        tree = _word(await git("write-tree"))
        signed = evolve(git, env={**git.env, **author})
        commit = await signed("commit-tree", tree, "-p", base_sha, "-F", "-", stdin=message)
    except GitError as error:
        raise PatchConflict(f"the patch does not apply to {base_sha}: {error}") from error
    listed = await git("diff-tree", "-r", "--raw", "--numstat", "-z", *DIFF[2:], base_sha, tree)
    entries, _, _ = read_listing(listed)
    twins = await twins_of(git, entries)
    patch_id = await git("patch-id", "--stable", stdin=patch)
    return Published(
        git=git,
        commit=_word(commit),
        tree=tree,
        subject=message.decode("utf-8", "replace").partition("\n")[0].strip(),
        entries=tuple([await _described(git, tree, entry, twins) for entry in entries]),
        patch_id=patch_id.decode().partition(" ")[0] or None,
    )


async def is_on(git: Git, remote: Remote, branch: str, commit: str) -> bool:
    """Whether the remote's branch has the commit. Raises: GitError when there is no such branch.

    A pull request brings all that its base has and the branch has not, and nobody judged that.
    """
    tip = await _fetched(remote.reached_by(git), remote, f"refs/heads/{branch}")
    return not await git("rev-list", "--max-count=1", commit, f"^{tip}", "--")


async def push(
    published: Published, remote: Remote, branch: str
) -> Literal["pushed", "same", "foreign"]:
    """Put the commit on the remote's branch, unless it is there already.

    `foreign`: somebody else has committed to the branch, and it is left as it is. What happens to
    it meanwhile is not overwritten either. Raises: GitError.
    """
    git = remote.reached_by(published.git)
    ref = f"refs/heads/{branch}"
    listed = await git("ls-remote", "--heads", "--", remote.url, ref)
    there = listed.decode("utf-8", "replace").split("\t", 1)[0].strip()
    if there == published.commit:
        return "same"
    if there:
        tip = await _fetched(git, remote, ref)
        committer = await git("log", "-1", "--format=%ce", tip, "--")
        if _word(committer) != AUTHOR_EMAIL:
            return "foreign"
        there = tip
    lease = f"--force-with-lease={ref}:{there}"
    await git(
        "push", "--no-verify", "--quiet", lease, "--", remote.url, f"{published.commit}:{ref}"
    )
    return "pushed"


async def _fetched(git: Git, remote: Remote, ref: str) -> str:
    """The commit of a remote's ref, now here as well."""
    await git("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", remote.url, ref)
    return _word(await git("rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}"))


async def _mail(git: Git, patch: bytes) -> tuple[bytes, dict[str, str]]:
    """(message, author as `git commit-tree` takes it) of a patch that is a mail."""
    message, rest = git.git_dir / "mail-message", git.git_dir / "mail-patch"
    told = await git("mailinfo", "--no-scissors", str(message), str(rest), stdin=patch)
    lines = told.decode("utf-8", "replace").splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    subject = fields.get("Subject", "Changes by harness-batch")
    body = message.read_bytes().strip()
    date = fields.get("Date") or "@0 +0000"
    env = {
        "GIT_AUTHOR_NAME": _name(fields.get("Author", "")) or AUTHOR_NAME,
        "GIT_AUTHOR_EMAIL": _name(fields.get("Email", "")) or AUTHOR_EMAIL,
        "GIT_AUTHOR_DATE": date,
        **_COMMITTER,
        "GIT_COMMITTER_DATE": date,
    }
    return subject.encode() + (b"\n\n" + body if body else b"") + b"\n", env


def _name(text: str) -> str:
    """As git takes it: a mail says what it likes."""
    return "".join(c for c in text if c.isprintable() and c not in "<>")[:_LONGEST_NAME].strip(
        " .,"
    )


async def _described(
    git: Git, tree: str, entry: PatchEntry, twins: Mapping[str, str]
) -> PatchEntry:
    entry = evolve(entry, twin=twins.get(entry.path))
    if entry.new_mode != _LINK:
        return entry
    target = await git("cat-file", "blob", f"{tree}:{entry.path}")
    return evolve(entry, link_target=os.fsdecode(target[:_LONGEST_LINK]))


def sha256(data: bytes) -> str:
    """Hex digest, as `result.json` holds that of a patch."""
    return hashlib.sha256(data).hexdigest()


def _word(said: bytes) -> str:
    return said.decode().strip()
