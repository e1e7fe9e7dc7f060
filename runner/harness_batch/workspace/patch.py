"""From a staged index to a session's patch: one mail for `git am`, byte for byte, and its facts.

The commit and its objects live in a throw-away git directory; the patch is what stays.
"""

import hashlib
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath

from attrs import evolve, frozen

from harness_batch.errors import GitError
from harness_batch.workspace.changes import Staged
from harness_batch.workspace.git import Git
from harness_batch.workspace.mail import mail_safe
from harness_batch.workspace.patch_rules import PatchEntry, remarks

AUTHOR_NAME = "harness-batch"
AUTHOR_EMAIL = "harness-batch@users.noreply.localhost"

DIFF = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)


@frozen(kw_only=True)
class Commit:
    """What the patch says of itself; `date` is ISO 8601 with an offset."""

    message: str
    date: str
    author_name: str = AUTHOR_NAME
    author_email: str = AUTHOR_EMAIL

    def environment(self) -> dict[str, str]:
        """For `git commit-tree`."""
        date = f"@{int(datetime.fromisoformat(self.date).timestamp())} +0000"
        author = {"NAME": self.author_name, "EMAIL": self.author_email, "DATE": date}
        return {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in author.items()}


@frozen(kw_only=True)
class Captured:
    """A session's changes."""

    patch: bytes
    """`git am`-able; empty when everything that changed was left out (`entries` say why)."""
    entries: tuple[PatchEntry, ...]
    """Every changed path, by path; for `judge_patch`."""
    added: int = 0
    removed: int = 0
    """Lines; binary files count none."""
    sha256: str
    patch_id: str | None = None
    applies: bool = False
    """`git apply --check` on the base says so."""
    notices: tuple[str, ...] = ()
    """What the user should know about it."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Changed paths, workspace-relative."""
        return tuple(entry.path for entry in self.entries)


@frozen(kw_only=True)
class Base:
    """What the patch starts from: a commit (None: nothing) and its tree."""

    commit: str | None
    tree: str


async def make_patch(
    git: Git, base: Base, staged: Staged, commit: Commit, root: Path
) -> Captured | None:
    """The patch from the base to what is staged in git's index; None when nothing changed."""
    tree = _word(await git("write-tree"))
    listed = await git("diff-tree", "-r", "--raw", "--numstat", "-z", *DIFF[2:], base.tree, tree)
    changed, added, removed = read_listing(listed)
    twins = await twins_of(git, changed)
    entries = [_described(entry, staged, root, twins) for entry in changed]
    entries = sorted((*entries, *staged.problems), key=lambda entry: os.fsencode(entry.path))
    if not entries:
        return None
    patch, patch_id = await _mail(git, base, tree, commit) if changed else (b"", None)
    return Captured(
        patch=patch,
        entries=tuple(entries),
        added=added,
        removed=removed,
        sha256=hashlib.sha256(patch).hexdigest(),
        patch_id=patch_id,
        applies=await _applies(git, base, patch),
        notices=tuple(remarks(entries)),
    )


async def _mail(git: Git, base: Base, tree: str, commit: Commit) -> tuple[bytes, str | None]:
    """(mail, patch id)."""
    parent = ("-p", base.commit) if base.commit else ()
    signed = evolve(git, env={**git.env, **commit.environment()})
    message = mail_safe(commit.message).encode()
    made = _word(await signed("commit-tree", tree, *parent, "-F", "-", stdin=message))
    formatting = ("format-patch", "--stdout", "--root", "--no-signature", *DIFF, "-1", made)
    mail = await git(*formatting)
    patch_id = await git("patch-id", "--stable", stdin=mail)
    if b"\r\n" in mail:
        attributes = git.git_dir / "info" / "attributes"
        attributes.write_text("* -diff !merge\n")
        mail = _carriage_returns_kept(mail, await git(*formatting))
    return mail, patch_id.decode().partition(" ")[0] or None


def _carriage_returns_kept(text: bytes, binary: bytes) -> bytes:
    """The text patch with a binary section for each file that has CR at an end of line.

    `git am` drops those CRs as the mail's own; in a binary section they cannot be seen.
    """
    (head, *sections), (_, *safe) = SECTION.split(text), SECTION.split(binary)
    if len(sections) != len(safe):
        return binary
    return head + b"".join(
        kept if b"\r\n" in section else section
        for section, kept in zip(sections, safe, strict=True)
    )


async def _applies(git: Git, base: Base, patch: bytes) -> bool:
    index = git.with_index(git.git_dir / "check-index")
    try:
        await index("read-tree", base.tree)
        await index("apply", "--cached", "--check", "--whitespace=nowarn", "-", stdin=patch)
    except GitError:
        return False
    return True


async def twins_of(git: Git, changed: Sequence[PatchEntry]) -> dict[str, str]:
    """New path -> another path of the tree that a file system which folds names mixes it up with.

    Folders count too: `Docs/a` beside `docs/b` is one folder there.
    """
    new = [entry.path for entry in changed if entry.status == "A"]
    if not new:
        return {}
    listed = (await git("ls-files", "-z")).split(b"\0")
    spelled: dict[str, set[str]] = {}
    for path in map(os.fsdecode, filter(None, listed)):
        for name in (path, *map(str, PurePosixPath(path).parents)):
            spelled.setdefault(_folded(name), set()).add(name)
    found = {}
    for path in new:
        for name in (path, *map(str, PurePosixPath(path).parents)):
            others = spelled[_folded(name)] - {name}
            if others:
                found[path] = min(others)
    return found


def _folded(path: str) -> str:
    return unicodedata.normalize("NFKC", path).casefold()


def _described(
    entry: PatchEntry, staged: Staged, root: Path, twins: Mapping[str, str]
) -> PatchEntry:
    target = None
    if entry.new_mode == 0o120000:
        target = os.fsdecode(os.readlink(os.fsencode(root) + b"/" + os.fsencode(entry.path)))  # noqa: PTH115 - bytes
    return evolve(
        entry,
        link_target=target,
        special_bits=entry.path in staged.special_bits,
        twin=twins.get(entry.path),
    )


def read_listing(listed: bytes) -> tuple[list[PatchEntry], int, int]:
    """(entries, lines added, lines removed) of `diff-tree --raw --numstat -z`."""
    records = iter(listed.split(b"\0"))
    entries: list[PatchEntry] = []
    added = removed = 0
    binary: set[str] = set()
    for record in records:
        if record.startswith(b":"):
            entries.append(_entry(record.decode(), os.fsdecode(next(records))))
        elif record:
            plus, minus, path = record.split(b"\t", 2)
            if plus == b"-":
                binary.add(os.fsdecode(path))
            added, removed = added + _count(plus), removed + _count(minus)
    entries = [evolve(entry, binary=entry.path in binary) for entry in entries]
    return entries, added, removed


def _entry(record: str, path: str) -> PatchEntry:
    old, new, _, _, status = record.removeprefix(":").split(" ")
    match status:
        case "A" | "M" | "D" | "T":
            return PatchEntry(path=path, status=status, old_mode=int(old, 8), new_mode=int(new, 8))
        case _:
            raise GitError(f"git diff-tree: unknown status {status!r} of {path!r}")


def _count(number: bytes) -> int:
    return 0 if number == b"-" else int(number)


def _word(said: bytes) -> str:
    return said.decode().strip()
