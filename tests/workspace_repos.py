"""Real git repositories for the tests of workspace and sandbox."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harness_batch.recipe.record import WorkspaceWish
from harness_batch.workspace.patch import Commit
from harness_batch.workspace.repository import Repository, discover, resolve_base

COMMIT = Commit(message="What the agent did", date="2026-01-02T03:04:05+00:00")
WORKTREE = WorkspaceWish()
IN_PLACE = WorkspaceWish(mode="in-place")

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


def git(folder: Path, *args: str | Path, stdin: bytes = b"", **env: str) -> str:
    """The user's own git."""
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *map(str, args)],
        cwd=folder,
        env={**ENVIRONMENT, **env},
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return os.fsdecode(done.stdout).removesuffix("\n")


def write(folder: Path, files: Mapping[str, bytes | str]) -> None:
    """Make the files and their folders."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def committed(folder: Path, files: Mapping[str, bytes | str], message: str = "base") -> Path:
    """A repository at `folder` with one more commit that has these files."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    write(folder, files)
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return folder


def opened(folder: Path) -> tuple[Repository, str | None]:
    """(repository, commit of HEAD)."""
    repository = discover(folder)
    return repository, resolve_base(repository, "HEAD")


def tree_of(folder: Path) -> dict[str, tuple[str, bytes]]:
    """What lies in a folder, `.git` left out: path -> (kind, content)."""
    found: dict[str, tuple[str, bytes]] = {}
    for path in folder.rglob("*"):
        shown = path.relative_to(folder)
        if ".git" in shown.parts:
            continue
        if path.is_symlink():
            found[str(shown)] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            kind = "program" if path.stat().st_mode & 0o100 else "file"
            found[str(shown)] = (kind, path.read_bytes())
    return found


def applied(base: Path, folder: Path, patch: bytes) -> dict[str, tuple[str, bytes]]:
    """What a clone of `base` holds after `git am` of the patch."""
    git(base.parent, "clone", "-q", base, folder)
    git(folder, "am", "-q", stdin=patch)
    return tree_of(folder)
