"""Prices of a run's models: known before anything is spent, loaded while other things begin."""

from collections.abc import Iterator

import trio

from harness_batch.app.child_faults import child_models
from harness_batch.app.options import RunOptions
from harness_batch.app.prepare import Prepared
from harness_batch.config.record import Config
from harness_batch.errors import UsageError
from harness_batch.messages import ModelRef
from harness_batch.models.catalog import is_loaded, load, needs_list
from harness_batch.plan.choice import wants_prices
from harness_batch.plan.item import Item


def require_prices(prepared: Prepared, options: RunOptions) -> None:
    """A cost that is bounded must be known.

    Raises: UsageError that names the first model without prices.
    """
    if options.max_cost is None:
        return
    for ref in dict.fromkeys(_models(prepared)):
        if not prepared.child_items.chooser.is_priced(ref):
            raise UsageError(wants_prices("--max-cost", ref))


async def load_prices(prepared: Prepared) -> None:
    """The packaged prices, when a model of the run needs them."""
    await _load_for(tuple(_models(prepared)), prepared.config)


async def prices_of(item: Item, config: Config) -> None:
    """Waits until what the item's models cost can be told."""
    if not is_loaded():
        await _load_for(tuple(_of(item)), config)


async def _load_for(refs: tuple[ModelRef, ...], config: Config) -> None:
    if any(needs_list(config.providers[ref.provider], ref.model) for ref in dict.fromkeys(refs)):
        await trio.to_thread.run_sync(load)


def _models(prepared: Prepared) -> Iterator[ModelRef]:
    items = prepared.plan.items
    for item in items:
        yield from _of(item)
    yield from child_models(items, prepared.child_items)


def _of(item: Item) -> Iterator[ModelRef]:
    yield from item.models
    if item.small_model is not None:
        yield item.small_model
