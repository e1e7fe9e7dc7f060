"""Whether a patch may leave the session: paths, sizes, links and modes against the recipe's rules.

Pure. It judges the entries of the captured tree, never the patch's text.
"""

from collections.abc import Iterator, Sequence
from posixpath import dirname
from typing import Literal

from attrs import frozen
from pathspec import GitIgnoreSpec

from harness_batch.recipe.record import PatchRules

GITLINK, LINK, EXECUTABLE = 0o160000, 0o120000, 0o100755
LISTED = 5
"""Names in a remark."""


@frozen(kw_only=True)
class PatchEntry:
    """One changed path. Modes are git's (0 = absent on that side); names may hold any byte."""

    path: str
    """Workspace-relative; bytes that are no UTF-8 as surrogates (`os.fsencode` gives them back)."""
    status: Literal["A", "M", "D", "T", "X"]
    """Added, modified, deleted, type changed; X: changed, but left out of the patch."""
    old_mode: int = 0
    new_mode: int = 0
    link_target: str | None = None
    special_bits: bool = False
    """The file on disk is setuid or setgid; git does not keep that."""
    binary: bool = False
    """git takes its content for binary."""
    twin: str | None = None
    """Another path of the tree that some file systems take for this one."""
    problem: str | None = None
    """Why it was left out."""


def judge_patch(entries: Sequence[PatchEntry], rules: PatchRules, size: int = 0) -> str | None:
    """Why the rules refuse the patch, in one line; None when they do not.

    `size` is the patch's in bytes.
    """
    for entry in entries:
        reason = _judge_entry(entry)
        if reason is not None:
            return f"{_shown(entry.path)}: {reason}"
    return _judge_paths(entries, rules) or _judge_amount(entries, rules, size)


def _judge_entry(entry: PatchEntry) -> str | None:
    if entry.problem is not None:
        return entry.problem
    if GITLINK in (entry.old_mode, entry.new_mode):
        return "changes a submodule"
    if entry.special_bits:
        return "is setuid or setgid"
    if entry.twin is not None:
        return f"differs from {_shown(entry.twin)} only in case or spelling"
    if entry.binary and entry.new_mode == EXECUTABLE:
        return "is a binary program, which nobody can review"
    return None if entry.link_target is None else _judge_link(entry.path, entry.link_target)


def remarks(entries: Sequence[PatchEntry]) -> Iterator[str]:
    """What a reviewer should not overlook, one sentence a kind."""
    made = [e for e in entries if e.old_mode and e.new_mode == EXECUTABLE != e.old_mode]
    links = [e for e in entries if e.new_mode == LINK != e.old_mode]
    binary = [e for e in entries if e.binary and e.status != "D"]
    for told, found in (("made executable", made), ("new links", links), ("binary", binary)):
        names = [_shown(entry.path) for entry in found]
        if names:
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            yield f"patch: {told}: {', '.join(names[:LISTED])}{more}"


def _judge_link(path: str, target: str) -> str | None:
    """A link must stay in the tree, and that must be plain to see."""
    if target.startswith("/"):
        return f"links to the absolute path {_shown(target)}"
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    depth = len([part for part in dirname(path).split("/") if part])
    if climbs > depth:
        return f"links out of the repository, to {_shown(target)}"
    if ".." in parts[climbs:]:
        return f"links to {_shown(target)}, which may lead out of the repository"
    if any(part.casefold() == ".git" for part in parts):
        return f"links into .git, to {_shown(target)}"
    return None


def _judge_paths(entries: Sequence[PatchEntry], rules: PatchRules) -> str | None:
    protect = GitIgnoreSpec.from_lines(line.casefold() for line in rules.protect)
    allow = GitIgnoreSpec.from_lines(rules.allow)
    for entry in entries:
        path = _plain(entry.path)
        if protect.match_file(path.casefold()):
            return f"{_shown(entry.path)}: is protected (patch.protect)"
        if rules.allow and not allow.match_file(path):
            return f"{_shown(entry.path)}: is not among the allowed paths (patch.allow)"
    return None


def _judge_amount(entries: Sequence[PatchEntry], rules: PatchRules, size: int) -> str | None:
    if len(entries) > rules.max_files:
        return f"changes {len(entries)} files, more than patch.max_files = {rules.max_files}"
    if size > rules.max_bytes:
        return f"has {size} bytes, more than patch.max_bytes = {rules.max_bytes}"
    return None


def _plain(path: str) -> str:
    """For matching: a newline must not end a pattern's reach."""
    return "".join("\ufffd" if character < " " else character for character in path)


def _shown(text: str) -> str:
    return "".join(_escaped(text))


def _escaped(text: str) -> Iterator[str]:
    for character in text:
        yield character if character.isprintable() else repr(character)[1:-1]
