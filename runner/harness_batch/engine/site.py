"""Where an attempt works: the engine's seam to workspace and sandbox."""

from pathlib import Path
from typing import Protocol

from attrs import field, frozen

from harness_batch.processes import Launcher


@frozen(kw_only=True)
class Change:
    """What the workspace differs in from its base."""

    patch: bytes | None
    """A mail that `git am` takes; None when nothing was changed."""
    paths: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    patch_id: str | None = None
    applies: bool = True
    """`git apply --check` on the base said yes."""
    refused: str | None = None
    """Which patch rule it breaks."""


class Workspace(Protocol):
    """The folder of one attempt."""

    @property
    def root(self) -> Path:
        """Top of the work tree, resolved."""
        ...

    @property
    def cwd(self) -> Path:
        """Where the agent starts: `root` or a folder in it."""
        ...

    async def change(self, message: str) -> Change:
        """Take the patch, base to work tree. Raises: GitError."""
        ...

    async def reset(self) -> None:
        """Put it back to its base, as if nothing had been done. Raises: GitError."""
        ...


@frozen
class Site:
    """A workspace and who runs programs in it."""

    workspace: Workspace
    launcher: Launcher
    tmp: Path | None = field(default=None)
    """The session's private temporary folder."""
    setup: Launcher | None = field(default=None)
    """Who runs setup commands, whose network is their own; None: `launcher`."""
