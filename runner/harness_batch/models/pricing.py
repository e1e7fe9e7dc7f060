"""What a model call costs: tokens times prices, exact, or None where a price is unknown."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TypeVar

from attrs import evolve, fields

from harness_batch.config.record import Prices, Rates
from harness_batch.messages import TokenUsage

PER = Decimal(1_000_000)
"""Prices are per million tokens."""

UNITS = tuple(rate.name for rate in fields(Rates))
"""What is paid for, by the name of its rate."""

R = TypeVar("R", bound=Rates)

ZERO = Decimal(0)
FREE = Prices(input=ZERO, output=ZERO, cache_read=ZERO, cache_write=ZERO, cache_write_1h=ZERO)
"""What scripted replies cost."""


def cost(usage: TokenUsage, prices: Prices | None) -> Decimal | None:
    """US dollars of one call. None when some of its tokens have no known price.

    `usage.input` is the total, so what the cache took or gave is subtracted first; reasoning is
    part of `usage.output` already. The total also decides the tier, for all tokens of the call.
    """
    if prices is None:
        return None
    rates = prices.of(usage.input)
    written = usage.cache_write_5m + usage.cache_write_1h
    total = ZERO
    for tokens, price in (
        (max(0, usage.input - usage.cache_read - written), rates.input),
        (usage.cache_read, rates.cache_read),
        (usage.cache_write_5m, rates.cache_write),
        (usage.cache_write_1h, rates.cache_write_1h),
        (usage.output, rates.output),
    ):
        if tokens and price is None:
            return None
        total += tokens * (price or ZERO)
    return total / PER


def completed(prices: Prices) -> Prices:
    """What costs nothing to send costs nothing to keep either: cache prices are shares of it."""
    if prices.input != 0:
        return prices
    return laid_over(
        prices,
        evolve(prices, cache_read=ZERO, cache_write=ZERO, cache_write_1h=ZERO),
    )


def laid_over(said: Rates, below: R) -> R:
    """`below` with every rate that `said` knows in place of its own."""
    return evolve(
        below,
        input=_first(said.input, below.input),
        output=_first(said.output, below.output),
        cache_read=_first(said.cache_read, below.cache_read),
        cache_write=_first(said.cache_write, below.cache_write),
        cache_write_1h=_first(said.cache_write_1h, below.cache_write_1h),
    )


def _first(rate: Decimal | None, other: Decimal | None) -> Decimal | None:
    return other if rate is None else rate


def rates_of(rates: Rates) -> Mapping[str, Decimal | None]:
    """Rate by unit; None is unknown."""
    return {unit: getattr(rates, unit) for unit in UNITS}
