"""What a model call costs: tokens times prices, exact, or None where a price is unknown."""

from decimal import Decimal

from harness_batch.config.record import Prices
from harness_batch.messages import TokenUsage

PER = Decimal(1_000_000)
"""Prices are per million tokens."""

FREE = Prices(
    input=Decimal(0),
    output=Decimal(0),
    cache_read=Decimal(0),
    cache_write=Decimal(0),
    cache_write_1h=Decimal(0),
)
"""What scripted replies cost."""


def cost(usage: TokenUsage, prices: Prices | None) -> Decimal | None:
    """US dollars of one call. None when some of its tokens have no known price.

    `usage.input` is the total, so what the cache took or gave is subtracted first; reasoning is
    part of `usage.output` already.
    """
    if prices is None:
        return None
    written = usage.cache_write_5m + usage.cache_write_1h
    total = Decimal(0)
    for tokens, price in (
        (max(0, usage.input - usage.cache_read - written), prices.input),
        (usage.cache_read, prices.cache_read),
        (usage.cache_write_5m, prices.cache_write),
        (usage.cache_write_1h, prices.cache_write_1h),
        (usage.output, prices.output),
    ):
        if tokens and price is None:
            return None
        total += tokens * (price or Decimal(0))
    return total / PER
