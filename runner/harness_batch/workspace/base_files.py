"""The files of one commit, read from git's objects: what nobody has changed since.

Regular files only: links, submodules and whatever else a tree can name are not seen.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property

from attrs import define, frozen

from harness_batch.errors import GitError
from harness_batch.workspace.repository import Repository

_REGULAR = (b"100644", b"100755", b"100664")


@frozen
class BaseFile:
    """A regular file of the commit. `path` is relative to its top, with `/`."""

    path: str
    size: int
    oid: str


@define(slots=False)
class BaseFiles:
    """Of a repository at `sha`; None is a repository without a commit, which has no files."""

    repository: Repository
    sha: str | None

    def below(self, folder: str) -> tuple[BaseFile, ...]:
        """All files in `folder` and its folders, by path. Raises: GitError."""
        if self.sha is None:
            return ()
        where = ["--", folder.strip("/") + "/"] if folder.strip("/") else []
        return tuple(self._listed("-r", "-z", "-l", self.sha, *where))

    @cached_property
    def all(self) -> tuple[BaseFile, ...]:
        """Every file of the commit. Raises: GitError."""
        return self.below("")

    def named(self, paths: Sequence[str]) -> dict[str, BaseFile]:
        """Those of `paths` that are regular files. Raises: GitError."""
        if self.sha is None or not paths:
            return {}
        return {file.path: file for file in self._listed("-z", "-l", self.sha, "--", *paths)}

    def read(self, file: BaseFile, most: int) -> bytes:
        """At most `most` bytes; nothing of a file that is larger than a hundredfold of it.

        Raises: GitError.
        """
        if file.size > 100 * most:
            raise GitError(f"{file.path} has {file.size} bytes")
        return self.repository.git().now("cat-file", "blob", file.oid)[:most]

    def _listed(self, *arguments: str) -> Iterator[BaseFile]:
        for line in self.repository.git().now("ls-tree", *arguments).split(b"\0"):
            head, _, path = line.partition(b"\t")
            words = head.split()
            if len(words) == 4 and words[0] in _REGULAR and words[1] == b"blob":
                yield BaseFile(os.fsdecode(path), int(words[3]), words[2].decode())
