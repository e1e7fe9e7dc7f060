"""A path as what the rules are asked: relative to the workspace, or `external_directory`."""

from pathlib import Path

from harness_batch.rules import Ask


def path_asks(permission: str, path: Path, root: Path) -> tuple[Ask, ...]:
    """What a tool must be allowed for `path`; both paths absolute and resolved.

    Inside the workspace the pattern is relative, POSIX form, `.` for the workspace itself.
    Outside it is absolute, and `external_directory` is asked too.
    """
    if path.is_relative_to(root):
        return (Ask(permission, path.relative_to(root).as_posix()),)
    return (Ask(permission, path.as_posix()), Ask("external_directory", path.as_posix()))
