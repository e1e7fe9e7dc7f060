"""Prices as rows of the public table `price`."""

from collections.abc import Iterator

from harness_batch.config.record import Prices, Rates
from harness_batch.messages import ModelRef
from harness_batch.models.pricing import rates_of
from harness_batch.records import Price


def price_rows(ref: ModelRef, prices: Prices) -> Iterator[Price]:
    """What is known of them as rows of the database; a tier's units end in `>TOKENS`."""
    groups: list[tuple[str, Rates]] = [("", prices)]
    groups += [(f">{tier.above}", tier) for tier in prices.tiers]
    since = f"{prices.valid_from.isoformat()}T00:00:00+00:00" if prices.valid_from else None
    for mark, rates in groups:
        for unit, usd in rates_of(rates).items():
            if usd is not None:
                yield Price(
                    price_version=prices.version or "",
                    provider=ref.provider,
                    model=ref.model,
                    unit=unit + mark,
                    usd_per_mtok=usd,
                    valid_from=since,
                )
