"""From what a provider reports to what the call costs: each figure worked out by hand beside it."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from attrs import evolve

from harness_batch.config.record import ModelInfo, PricePeriod, Prices, ProviderSettings, Tier
from harness_batch.messages import TokenUsage
from harness_batch.models import anthropic
from harness_batch.models.catalog import known
from harness_batch.models.pricing import cost
from harness_batch.models.usage_report import chat_usage, responses_usage, stated_cost

D = Decimal
SONNET = Prices(
    input=D(3),
    output=D(15),
    cache_read=D("0.30"),
    cache_write=D("3.75"),
    cache_write_1h=D(6),
    tiers=(
        Tier(
            above=200_000,
            input=D(6),
            output=D("22.50"),
            cache_read=D("0.60"),
            cache_write=D("7.50"),
            cache_write_1h=D(12),
        ),
    ),
)
GPT = Prices(input=D("1.25"), output=D(10), cache_read=D("0.125"))
ROUTED = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def messages(**usage: Any) -> TokenUsage:
    """As Anthropic's Messages API reports it: the cache stands beside the input."""
    told = anthropic.usage_of(usage)
    assert told is not None
    return told


@pytest.mark.parametrize(
    ("usage", "prices", "usd"),
    [
        # plain: 1,200*3 + 300*15 = 3,600 + 4,500 = 8,100 per million
        (messages(input_tokens=1200, output_tokens=300), SONNET, D("0.0081")),
        # read: 200*3 + 9,000*0.30 + 300*15 = 600 + 2,700 + 4,500 = 7,800
        (
            messages(input_tokens=200, cache_read_input_tokens=9000, output_tokens=300),
            SONNET,
            D("0.0078"),
        ),
        # written for 5 minutes: 200*3 + 9,000*3.75 + 300*15 = 600 + 33,750 + 4,500 = 38,850
        (
            messages(input_tokens=200, cache_creation_input_tokens=9000, output_tokens=300),
            SONNET,
            D("0.03885"),
        ),
        # written for an hour: 200*3 + 9,000*6 + 300*15 = 600 + 54,000 + 4,500 = 59,100
        (
            messages(
                input_tokens=200,
                cache_creation_input_tokens=9000,
                cache_creation={"ephemeral_1h_input_tokens": 9000},
                output_tokens=300,
            ),
            SONNET,
            D("0.0591"),
        ),
        # all at once: 100*3 + 5,000*0.30 + 2,000*3.75 + 1,000*6 + 50*15
        # = 300 + 1,500 + 7,500 + 6,000 + 750 = 16,050
        (
            messages(
                input_tokens=100,
                cache_read_input_tokens=5000,
                cache_creation_input_tokens=3000,
                cache_creation={
                    "ephemeral_5m_input_tokens": 2000,
                    "ephemeral_1h_input_tokens": 1000,
                },
                output_tokens=50,
            ),
            SONNET,
            D("0.01605"),
        ),
        # the last token of the first tier: 200,000*3 + 1,000*15 = 600,000 + 15,000 = 615,000
        (messages(input_tokens=200_000, output_tokens=1000), SONNET, D("0.615")),
        # one more, cache included, and all tokens cost more:
        # 50,001*6 + 150,000*0.60 + 1,000*22.50 = 300,006 + 90,000 + 22,500 = 412,506
        (
            messages(input_tokens=50_001, cache_read_input_tokens=150_000, output_tokens=1000),
            SONNET,
            D("0.412506"),
        ),
        # reasoning is part of the output: 1,000*1.25 + 800*10 = 1,250 + 8,000 = 9,250
        (
            chat_usage(
                {
                    "prompt_tokens": 1000,
                    "completion_tokens": 800,
                    "total_tokens": 1800,
                    "completion_tokens_details": {"reasoning_tokens": 700},
                }
            ),
            GPT,
            D("0.00925"),
        ),
        # reasoning beside the completion (xAI, Gemini): 1,000*1.25 + (100 + 700)*10 = 9,250
        (
            chat_usage(
                {
                    "prompt_tokens": 1000,
                    "completion_tokens": 100,
                    "total_tokens": 1800,
                    "completion_tokens_details": {"reasoning_tokens": 700},
                }
            ),
            GPT,
            D("0.00925"),
        ),
        # the cache is inside the prompt: 200*1.25 + 800*0.125 + 10*10 = 250 + 100 + 100 = 450
        (
            responses_usage(
                {
                    "input_tokens": 1000,
                    "input_tokens_details": {"cached_tokens": 800},
                    "output_tokens": 10,
                    "total_tokens": 1010,
                }
            ),
            GPT,
            D("0.00045"),
        ),
        # a gateway with the cache beside the prompt comes to the same
        (
            chat_usage(
                {
                    "prompt_tokens": 200,
                    "completion_tokens": 10,
                    "total_tokens": 1010,
                    "prompt_tokens_details": {"cached_tokens": 800},
                }
            ),
            GPT,
            D("0.00045"),
        ),
        # DeepSeek's names: 100*1.25 + 900*0.125 + 0 = 125 + 112.5 = 237.5
        (
            chat_usage(
                {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_cache_hit_tokens": 900}
            ),
            GPT,
            D("0.0002375"),
        ),
        # a price that is known in part: nobody knows what 100 written tokens cost
        (
            chat_usage(
                {
                    "prompt_tokens": 1000,
                    "completion_tokens": 0,
                    "prompt_tokens_details": {"cache_write_tokens": 100},
                }
            ),
            GPT,
            None,
        ),
    ],
)
def test_what_is_reported_costs_this(
    usage: TokenUsage | None, prices: Prices, usd: Decimal | None
) -> None:
    assert usage is not None
    assert cost(usage, prices) == usd


def test_a_price_change_counts_from_its_day_on() -> None:
    cheaper = evolve(GPT, input=D(1), output=D(8), valid_from=date(2026, 3, 1))
    info = ModelInfo(prices=GPT, periods=(PricePeriod(prices=cheaper, since=date(2026, 3, 1)),))
    usage = chat_usage({**ROUTED})
    assert usage is not None
    before = info.at(datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC)).prices
    after = info.at(datetime(2026, 3, 1, tzinfo=UTC)).prices
    assert usage is not None
    # 1,000*1.25 + 100*10 = 2,250, then 1,000*1 + 100*8 = 1,800
    assert cost(usage, before) == D("0.00225")
    assert cost(usage, after) == D("0.0018")


def test_the_packaged_prices_know_what_a_model_cost_back_then() -> None:
    openai = ProviderSettings(name="openai", type="openai-chat")
    info = known(openai, "o3")
    usage = chat_usage({**ROUTED})
    assert usage is not None
    # On 2025-06-10 it fell from 10 and 40 to 2 and 8: 10,000 + 4,000, then 2,000 + 800
    assert cost(usage, info.at(datetime(2025, 6, 9, tzinfo=UTC)).prices) == D("0.014")
    assert cost(usage, info.at(datetime(2025, 6, 10, tzinfo=UTC)).prices) == D("0.0028")


def test_a_price_in_the_configuration_wins_and_leaves_the_others() -> None:
    own = ModelInfo(prices=Prices(input=D(2)))
    mine = ProviderSettings(name="openai", type="openai-chat", models={"gpt-5": own})
    prices = known(mine, "gpt-5").prices
    assert prices is not None
    assert (prices.source, (prices.version or "")[:7]) == ("config", "config-")
    # input 2 of ours, output 10 and cache 0.125 of the catalog: 200*2 + 800*0.125 + 10*10 = 600
    usage = TokenUsage(input=1000, cache_read=800, output=10)
    assert cost(usage, prices) == D("0.0006")


def test_a_model_that_costs_nothing_costs_nothing_from_the_cache_either() -> None:
    free = ModelInfo(prices=Prices(input=D(0), output=D(0)))
    mine = ProviderSettings(name="mine", type="openai-chat", models={"m": free})
    usage = TokenUsage(input=1000, cache_read=800, cache_write_5m=10, output=10)
    assert cost(usage, known(mine, "m").prices) == 0


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        ({**ROUTED, "cost": 0.0021}, D("0.0021")),
        ({**ROUTED, "cost": "0.0021", "is_byok": False}, D("0.0021")),
        # the user's own key at the vendor: OpenRouter's 5 % and the vendor's bill
        (
            {
                "cost": 0.0001,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.002},
            },
            D("0.0021"),
        ),
        ({"cost": 0.0001, "is_byok": True}, None),
        ({"cost_in_usd_ticks": 37_756_000}, D("0.0037756")),
        ({"cost": {"total_cost": 0.006}}, D("0.006")),
        ({"cost": -1}, None),
        ({"cost": True}, None),
        ({"cost": "free"}, None),
        (ROUTED, None),
    ],
)
def test_what_the_provider_says_a_call_cost(usage: dict[str, Any], usd: Decimal | None) -> None:
    assert stated_cost(usage) == usd


@pytest.mark.parametrize(
    "usage",
    [{}, {"input_tokens": 5}, {"input_tokens": "5", "output_tokens": 1}, {"output_tokens": 1}],
)
def test_what_is_not_counted_is_unknown_in_all_formats(usage: dict[str, Any]) -> None:
    assert anthropic.usage_of(usage) is None
    assert responses_usage(usage) is None


@pytest.mark.parametrize("cost", ["1E+99999999", 1e300, -1, "nan", "9" * 100, 10**9])
def test_a_stated_cost_that_nobody_can_mean_is_none(cost: object) -> None:
    assert stated_cost({"cost": cost}) is None


def test_a_stated_cost_of_next_to_nothing_is_nothing() -> None:
    assert stated_cost({"cost": "1E-99999999"}) == 0
