"""A session's patch as a commit on its base, and that commit on a branch of a remote.

All of it in a throw-away git directory that borrows the repository's objects: the checkout, its
index, its hooks and its configuration are not touched, and none of them is obeyed.
"""

import base64
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import evolve, field, frozen

from harness_batch.errors import GitError, PatchConflict
from harness_batch.workspace.git import SETTINGS, Git
from harness_batch.workspace.gitdir import make_git_dir
from harness_batch.workspace.patch import AUTHOR_EMAIL, AUTHOR_NAME, DIFF, read_listing
from harness_batch.workspace.patch_rules import PatchEntry
from harness_batch.workspace.repository import Repository

_LINK = 0o120000
_LONGEST_LINK = 4096


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

    def settings(self) -> dict[str, str]:
        """Git's configuration for one call, through the environment."""
        secret = base64.b64encode(f"x-access-token:{self.token}".encode()).decode()
        header = {"http.extraHeader": f"Authorization: Basic {secret}"} if self.token else {}
        chosen = {**SETTINGS, "credential.helper": "", **header}
        return {
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

    The same patch gives the same commit. Raises: PatchConflict when it does not apply.
    """
    message, author = await _mail(git, patch)
    await git("read-tree", base_sha)
    try:
        await git("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch)
    except GitError as error:
        raise PatchConflict(f"the patch does not apply to {base_sha}: {error}") from error
    tree = _word(await git("write-tree"))
    signed = evolve(git, env={**git.env, **author})
    commit = await signed("commit-tree", tree, "-p", base_sha, "-F", "-", stdin=message)
    listed = await git("diff-tree", "-r", "--raw", "--numstat", "-z", *DIFF[2:], base_sha, tree)
    entries, _, _ = read_listing(listed)
    patch_id = await git("patch-id", "--stable", stdin=patch)
    return Published(
        git=git,
        commit=_word(commit),
        tree=tree,
        subject=message.decode("utf-8", "replace").partition("\n")[0].strip(),
        entries=tuple([await _described(git, tree, entry) for entry in entries]),
        patch_id=patch_id.decode().partition(" ")[0] or None,
    )


async def push(published: Published, remote: Remote, branch: str) -> bool:
    """Put the commit on the remote's branch; False when the branch has the same tree already.

    A branch that somebody else moved meanwhile is not overwritten. Raises: GitError.
    """
    git = evolve(published.git, env={**published.git.env, **remote.settings()})
    ref = f"refs/heads/{branch}"
    listed = await git("ls-remote", "--heads", "--", remote.url, ref)
    there = listed.decode("utf-8", "replace").split("\t", 1)[0].strip()
    if there == published.commit:
        return False
    lease = f"--force-with-lease={ref}:{there}"
    await git(
        "push", "--no-verify", "--quiet", lease, "--", remote.url, f"{published.commit}:{ref}"
    )
    return True


async def _mail(git: Git, patch: bytes) -> tuple[bytes, dict[str, str]]:
    """(message, author as `git commit-tree` takes it) of a patch that is a mail."""
    message, rest = git.git_dir / "mail-message", git.git_dir / "mail-patch"
    told = await git("mailinfo", "--no-scissors", str(message), str(rest), stdin=patch)
    fields = dict(line.split(": ", 1) for line in told.decode().splitlines() if ": " in line)
    subject = fields.get("Subject", "Changes by harness-batch")
    body = message.read_bytes().strip()
    who = {
        "NAME": fields.get("Author") or AUTHOR_NAME,
        "EMAIL": fields.get("Email") or AUTHOR_EMAIL,
        "DATE": fields.get("Date") or "@0 +0000",
    }
    env = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
    return subject.encode() + (b"\n\n" + body if body else b"") + b"\n", env


async def _described(git: Git, tree: str, entry: PatchEntry) -> PatchEntry:
    if entry.new_mode != _LINK:
        return entry
    target = await git("cat-file", "blob", f"{tree}:{entry.path}")
    return evolve(entry, link_target=os.fsdecode(target[:_LONGEST_LINK]))


def sha256(data: bytes) -> str:
    """Hex digest, as `result.json` holds that of a patch."""
    return hashlib.sha256(data).hexdigest()


def _word(said: bytes) -> str:
    return said.decode().strip()
