"""A part of the plan: by globs on item keys."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from harness_batch.errors import UsageError
from harness_batch.plan.item import Item
from harness_batch.words import nearest


def select(items: Sequence[Item], only: Sequence[str]) -> tuple[Item, ...]:
    """The items whose key one of `only` names or matches; all without.

    Raises: UsageError when it matches nothing.
    """
    kept = select_keys([item.key for item in items], only)
    return tuple(item for item in items if item.key in kept)


def select_keys(keys: Sequence[str], only: Sequence[str]) -> frozenset[str]:
    """As `select`, of item keys alone."""
    kept = frozenset(key for key in keys if not only or _matches(key, only))
    if only and not kept:
        raise UsageError(_nothing(keys, only))
    return kept


def _matches(key: str, globs: Sequence[str]) -> bool:
    return any(key == glob or fnmatchcase(key, glob) for glob in globs)


def _nothing(keys: Sequence[str], only: Sequence[str]) -> str:
    close = nearest(only[0], keys)
    some = ", ".join(keys[:5]) + (", ..." if len(keys) > 5 else "")
    return f"--only {' '.join(only)}: matches no item{close} (items: {some or 'none'})"
