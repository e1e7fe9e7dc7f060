"""Throw-away git directories that borrow the objects of the user's repository.

Written by hand, a few small files, so that a session costs no git process for it and holds nothing
of the repository's configuration: no remotes, no credentials, no hooks, no filters.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness_batch.workspace.repository import Repository

NEVER_IN_A_PATCH = (
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".venv",
)
"""Folders (or files) of that name, anywhere."""

RUNNER_FILES = (
    ".harness/.gitignore",
    ".harness/runs",
    ".harness/history*",
    ".harness/worktrees",
    ".harness/cache",
    ".harness/*.lock",
)
"""What the runner itself writes, as gitignore patterns."""


def make_git_dir(
    place: Path, repository: Repository, head: str | None, borrow: Sequence[Path] = ()
) -> Path:
    """A git directory at `place`, HEAD detached at `head` or, when None, on a branch unborn.

    Objects come from the repository and from `borrow` (other object folders).
    """
    (place / "objects" / "info").mkdir(parents=True)
    (place / "refs" / "heads").mkdir(parents=True)
    (place / "info").mkdir()
    (place / "HEAD").write_text(f"{head or 'ref: refs/heads/main'}\n")
    (place / "config").write_text(_config(repository))
    stores = (repository.objects, *borrow)
    (place / "objects" / "info" / "alternates").write_bytes(b"".join(map(_alternate, stores)))
    (place / "info" / "attributes").write_text("* !diff !merge\n")
    (place / "info" / "exclude").write_bytes(_excludes(repository))
    if repository.shallow:
        shutil.copyfile(repository.common_dir / "shallow", place / "shallow")
    return place


def _config(repository: Repository) -> str:
    sha1 = repository.object_format == "sha1"
    core = f"repositoryformatversion = {0 if sha1 else 1}\nfilemode = true\nbare = false\n"
    extensions = "" if sha1 else f"[extensions]\nobjectFormat = {repository.object_format}\n"
    return f"[core]\n{core}{extensions}"


def _alternate(store: Path) -> bytes:
    r"""A line of info/alternates, quoted as git's C strings: `"`, `\` and newlines may occur."""
    path = os.fsencode(store).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + path + b'"\n'


def _excludes(repository: Repository) -> bytes:
    """The user's own `info/exclude`, then what never enters a patch."""
    own = repository.common_dir / "info" / "exclude"
    users = own.read_bytes() if own.is_file() else b""
    return users + "\n".join(("", *NEVER_IN_A_PATCH, *map("/{}".format, RUNNER_FILES), "")).encode()
