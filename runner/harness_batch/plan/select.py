"""A part of the plan: by globs on item keys, and one machine's share."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from attrs import frozen

from harness_batch.errors import UsageError
from harness_batch.plan.item import Item
from harness_batch.words import nearest


@frozen
class Shard:
    """Share `index` of `total`, from 1."""

    index: int
    total: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """`I/N`. Raises: UsageError."""
        index, _, total = text.partition("/")
        if not (index.isdecimal() and total.isdecimal() and 1 <= int(index) <= int(total)):
            raise UsageError(f"--shard {text}: must be I/N with 1 <= I <= N, such as 2/4")
        return cls(int(index), int(total))


def select(
    items: Sequence[Item], *, only: Sequence[str] = (), shard: Shard | None = None
) -> tuple[Item, ...]:
    """The items whose key one of `only` names or matches (all without), of those the share.

    An empty share is legal. Raises: UsageError when `only` matches nothing.
    """
    kept = tuple(item for item in items if not only or _matches(item.key, only))
    if only and not kept:
        raise UsageError(_nothing(items, only))
    return kept[shard.index - 1 :: shard.total] if shard else kept


def _matches(key: str, globs: Sequence[str]) -> bool:
    return any(key == glob or fnmatchcase(key, glob) for glob in globs)


def _nothing(items: Sequence[Item], only: Sequence[str]) -> str:
    keys = [item.key for item in items]
    close = nearest(only[0], keys)
    some = ", ".join(keys[:5]) + (", ..." if len(keys) > 5 else "")
    return f"--only {' '.join(only)}: matches no item{close} (items: {some or 'none'})"
