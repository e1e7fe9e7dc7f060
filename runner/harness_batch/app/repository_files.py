"""What a matrix asks of a repository, answered from its pinned base commit by git."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_batch.app.history_rows import rows_of_history
from harness_batch.messages import JsonObject
from harness_batch.plan.inputs import RepoBase
from harness_batch.workspace.repository import Repository, resolve_base


class GitFiles:
    """Reads trees, never the checkout: an item must not depend on uncommitted files."""

    def __init__(self, repositories: Mapping[str, Repository], history: Path) -> None:
        self._repositories = repositories
        self._history = history

    def paths(self, base: RepoBase, under: str) -> Sequence[str]:
        """Files at the base below the folder `under` (empty: all). Raises: GitError."""
        if base.base_sha is None:
            return ()
        git = self._repositories[str(base.path)].git()
        folder = [f"{under.rstrip('/')}/"] if under.strip("/.") else []
        return _names(git.now("ls-tree", "-r", "-z", "--name-only", base.base_sha, "--", *folder))

    def changed_since(self, base: RepoBase, ref: str) -> Sequence[str]:
        """Files that are there at the base and differ from `ref`. Raises: GitError."""
        if base.base_sha is None:
            return ()
        repository = self._repositories[str(base.path)]
        other = resolve_base(repository, ref) or ref
        changed = repository.git().now(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d",
            other, base.base_sha,
        )  # fmt: skip
        return _names(changed)

    def asked(self, sql: str, most: int) -> Sequence[JsonObject]:
        """What the history answers. Raises: UsageError, StorageError."""
        return rows_of_history(self._history, sql, most)


def _names(listed: bytes) -> list[str]:
    return sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)
