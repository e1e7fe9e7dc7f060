"""Stand-in: what a shell command asks for, without looking into it."""

from pathlib import Path

from attrs import frozen

from harness_batch.rules import Ask


@frozen
class ShellPlace:
    """Where a command runs."""

    root: Path
    cwd: Path
    tmp: Path | None


def asks_of(command: str, place: ShellPlace) -> tuple[Ask, ...]:
    """The whole command as one pattern."""
    del place
    return (Ask("bash", command),)
