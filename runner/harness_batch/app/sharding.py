"""A run's part of the plan where several machines share it: which items, and how much money."""

from decimal import ROUND_DOWN, Decimal
from pathlib import Path

from attrs import evolve

from harness_batch.app.options import RunOptions
from harness_batch.app.prepare import Prepared
from harness_batch.plan.shards import Cut, Shard, cut_keys
from harness_batch.store.durations import recorded

_SMALLEST = Decimal("0.000000001")


def share(
    prepared: Prepared, options: RunOptions, shard: Shard, history: Path
) -> tuple[Prepared, RunOptions]:
    """The shard's items and its part of `--max-cost`. Blocks: the history is read."""
    items = prepared.plan.items
    known = recorded(history)
    recipes = {item.key: item.recipe.name for item in items}
    shards = cut_keys(
        [item.key for item in items], shard.total, lambda key: known.seconds(key, recipes[key])
    )
    mine = frozenset(shards[shard.index - 1])
    plan = evolve(prepared.plan, items=tuple(item for item in items if item.key in mine))
    ours = evolve(prepared, plan=plan, cut=Cut(shard, items, shards))
    return ours, evolve(options, max_cost=_part(options.max_cost, shard.total))


def _part(amount: Decimal | None, total: int) -> Decimal | None:
    """Rounded down: the parts together are never more than the whole."""
    return None if amount is None else (amount / total).quantize(_SMALLEST, ROUND_DOWN)
