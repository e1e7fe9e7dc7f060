"""Prices of some two thousand models over time, from the snapshot that comes with genai-prices.

The only module that touches that package. Nothing is ever fetched: prices are as old as the
installed package, and its version stands with each cost. Importing it takes 0.1 s beside what a run
has loaded anyway and 15 MB: it is loaded in a thread, and only for models that need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from attrs import frozen

from harness_batch.config.record import ModelInfo, PricePeriod, Prices, Tier
from harness_batch.models.pricing import completed

if TYPE_CHECKING:
    from genai_prices import types

UNITS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
}
"""Our names of what is paid for, and the package's."""
NOT_COUNTED = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")
"""Charges that our token counts cannot be priced with: such a model's price is unknown."""


@frozen(kw_only=True)
class PackagedPrices:
    """The snapshot. Use `packaged`."""

    version: str
    providers: tuple[types.Provider, ...]

    def find(self, provider: str, model: str) -> ModelInfo | None:
        """Window and prices of a model under any of its names; None when it is not listed."""
        known = self._provider(provider)
        found = known and known.find_model(model, all_providers=list(self.providers))
        return self._info(found) if found else None

    def listed(self, provider: str) -> Iterator[tuple[str, ModelInfo]]:
        """The provider's models by their main names."""
        known = self._provider(provider)
        for model in known.models if known else ():
            yield model.id, self._info(model)

    def names(self) -> tuple[str, ...]:
        """Every provider there is."""
        return tuple(provider.id for provider in self.providers)

    def _provider(self, name: str) -> types.Provider | None:
        return next((p for p in self.providers if p.id == name), None)

    def _info(self, model: types.ModelInfo) -> ModelInfo:
        base: Prices | None = None
        periods: list[PricePeriod] = []
        for period in _periods(model, self.version):
            if period.since is None and period.hours is None:
                base, periods = period.prices, []
            else:
                periods.append(period)
        if base is None and periods:  # where nothing holds, the first one counts
            base = periods[0].prices
        priced = [p for p in (base, *(period.prices for period in periods)) if _is_known(p)]
        return ModelInfo(
            context=model.context_window,
            prices=base if priced else None,
            periods=tuple(periods) if priced else (),
        )


@cache
def packaged() -> PackagedPrices:
    """Loaded once, when first asked for; takes a while, so ask in a thread."""
    import genai_prices  # noqa: PLC0415 - 0.1 s that only models without own prices need
    from genai_prices import data_snapshot  # noqa: PLC0415 - as above

    version = f"genai-prices-{genai_prices.__version__}"
    providers = tuple(data_snapshot.get_snapshot().providers)
    return PackagedPrices(version=version, providers=providers)


def _is_known(prices: Prices | None) -> bool:
    return prices is not None and (prices.input is not None or prices.output is not None)


def _periods(model: types.ModelInfo, version: str) -> Iterator[PricePeriod]:
    from genai_prices import types  # noqa: PLC0415 - loaded by now

    if isinstance(model.prices, types.ModelPrice):
        yield PricePeriod(prices=_prices(model.prices, version))
        return
    for entry in model.prices:
        match entry.constraint:
            case None:
                yield PricePeriod(prices=_prices(entry.prices, version))
            case types.StartDateConstraint(start_date=since):
                name = f"{version}@{since.isoformat()}"
                yield PricePeriod(prices=_prices(entry.prices, name, since), since=since)
            case types.TimeOfDateConstraint(start_time=begin, end_time=end):
                hours = (_utc(begin), _utc(end))
                name = f"{version}@{hours[0]:%H:%M}-{hours[1]:%H:%M}"
                yield PricePeriod(prices=_prices(entry.prices, name), hours=hours)


def _prices(listed: types.ModelPrice, version: str, since: date | None = None) -> Prices:
    # Not by getattr: what is missing would load the package's registry of units.
    given = vars(listed)
    if any(given.get(charge) is not None for charge in NOT_COUNTED):
        return Prices(source="catalog", version=version, valid_from=since)
    values = {name: given.get(unit) for name, unit in UNITS.items()}
    starts = {tier.start for value in values.values() for tier in _tiers(value)}
    tiers = tuple(
        Tier(above=start, **{name: _rate(value, start + 1) for name, value in values.items()})
        for start in sorted(starts)
    )
    first = {name: _rate(value, 0) for name, value in values.items()}
    return completed(
        Prices(**first, tiers=tiers, source="catalog", version=version, valid_from=since)
    )


def _tiers(value: Decimal | types.TieredPrices | None) -> list[types.Tier]:
    return [] if value is None or isinstance(value, Decimal) else value.tiers


def _rate(value: Decimal | types.TieredPrices | None, input_tokens: int) -> Decimal | None:
    """What a request with so many tokens of input pays."""
    if value is None or isinstance(value, Decimal):
        return value
    reached = [tier.price for tier in value.tiers if input_tokens > tier.start]
    return reached[-1] if reached else value.base


def _utc(clock: time) -> time:
    """Times without a zone are UTC already."""
    if clock.tzinfo is None:
        return clock
    moment = datetime.combine(date(2000, 1, 1), clock)
    return moment.astimezone(UTC).time()
