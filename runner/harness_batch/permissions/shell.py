"""Stand-in: what a shell command asks for, without looking into it."""

import re
from pathlib import Path

from attrs import frozen

from harness_batch.permissions.paths import path_asks
from harness_batch.rules import Ask


@frozen
class ShellPlace:
    """Where a command runs."""

    root: Path
    cwd: Path
    tmp: Path | None


def asks_of(command: str, place: ShellPlace) -> tuple[Ask, ...]:
    """The whole command as one pattern."""
    outside = path_asks("bash", place.cwd, place.root)[1:]
    return (*outside, Ask("bash", command))


def refusal(command: str, place: ShellPlace) -> str | None:
    """Why no rule can allow the command."""
    del place
    found = re.search(r"\bgit (push|remote|config)\b", command)
    return f"Refused: `git {found[1]}` is not available." if found else None
