"""What a file path asks for: the tool's permission, and `external_directory` outside the root."""

from pathlib import Path

from harness_batch.rules import Ask


def path_asks(permission: str, path: Path, root: Path) -> tuple[Ask, ...]:
    """Asks for a resolved `path`: relative to `root` (`.` for the root itself), posix slashes."""
    if path.is_relative_to(root):
        return (Ask(permission, path.relative_to(root).as_posix()),)
    outside = path.as_posix()
    return (Ask(permission, outside), Ask("external_directory", outside))
