"""The words for running programs: a command, how it ended, and who runs it."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from attrs import Factory, frozen


@frozen(kw_only=True)
class Command:
    """One program to run, with an empty stdin."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = Factory(dict)
    """Added to (and winning over) the launcher's allow-listed environment."""
    timeout: float | None = None
    """Seconds; then the whole process tree is killed."""


@frozen(kw_only=True)
class CommandEnd:
    """How it ended. `exit_code` is negative for a signal, None after a timeout."""

    exit_code: int | None
    timed_out: bool
    duration_s: float
    limit: str = ""
    """The sandbox's limit that the command met, in words; empty for none."""


class Launcher(Protocol):
    """Runs commands inside one session's sandbox and leaves nothing alive behind."""

    async def run(
        self,
        command: Command,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None] | None = None,
    ) -> CommandEnd:
        """Run to the end; without `stderr` both streams arrive interleaved at `stdout`.

        Background children are killed when the command's own process has ended, and the whole
        tree on cancellation. Raises: SandboxError when the program cannot be started.
        """
        ...


def own_program(name: str, *more: str) -> str | None:
    """Absolute path of a program that the runner itself calls; None when there is none.

    Looked for in the absolute folders on PATH and in `more`: an empty or relative entry means the
    folder that one happens to be in, and that may be a stranger's repository.
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = [folder for folder in folders if Path(folder).is_absolute()]
    return shutil.which(name, path=os.pathsep.join((*absolute, *more)))
