"""What a model call costs, against figures worked out by hand."""

from decimal import Decimal

import pytest

from harness_batch.config.record import Prices
from harness_batch.messages import TokenUsage
from harness_batch.models.pricing import FREE, cost

SONNET = Prices(
    input=Decimal("3.00"),
    output=Decimal("15.00"),
    cache_read=Decimal("0.30"),
    cache_write=Decimal("3.75"),
    cache_write_1h=Decimal("6.00"),
)
PLAIN = Prices(input=Decimal("3.0"), output=Decimal("15.0"))


@pytest.mark.parametrize(
    ("usage", "prices", "usd"),
    [
        # 1000 * 3 + 100 * 15 = 4500 per million
        (TokenUsage(input=1000, output=100), PLAIN, Decimal("0.0045")),
        # 10000 in all, 8000 read, 1000 written: 1000*3 + 8000*.3 + 1000*3.75 + 200*15 = 12150
        (
            TokenUsage(input=10_000, cache_read=8_000, cache_write_5m=1_000, output=200),
            SONNET,
            Decimal("0.01215"),
        ),
        # the older cache: 500*3 + 250*3.75 + 250*6 = 3937.5
        (
            TokenUsage(input=1_000, cache_write_5m=250, cache_write_1h=250),
            SONNET,
            Decimal("0.0039375"),
        ),
        # reasoning is output already
        (TokenUsage(output=100, reasoning=90), PLAIN, Decimal("0.0015")),
        # one token of the cheapest kind is not rounded away
        (TokenUsage(input=1, cache_read=1), SONNET, Decimal("0.0000003")),
        (TokenUsage(), PLAIN, Decimal(0)),
        # cached tokens without a price for them
        (TokenUsage(input=10, cache_read=1), PLAIN, None),
        (TokenUsage(input=10, cache_write_5m=1), PLAIN, None),
        (TokenUsage(input=10, cache_write_1h=1), PLAIN, None),
        (TokenUsage(input=10), Prices(output=Decimal(1)), None),
        (TokenUsage(output=10), Prices(input=Decimal(1)), None),
        (TokenUsage(input=10), None, None),
        (TokenUsage(input=10_000, cache_read=5, output=9), FREE, Decimal(0)),
        # a provider that counts its cache beside the input never gives a negative price
        (TokenUsage(input=10, cache_read=20), SONNET, Decimal("0.000006")),
    ],
)
def test_a_call_costs_this(usage: TokenUsage, prices: Prices | None, usd: Decimal | None) -> None:
    assert cost(usage, prices) == usd
