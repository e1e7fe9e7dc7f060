"""What is known of models: who says it first, and that nothing unknown is made up."""

from datetime import UTC, datetime, time
from decimal import Decimal

import pytest
from attrs import evolve

from harness_batch.config.record import (
    Abilities,
    ModelInfo,
    PricePeriod,
    Prices,
    ProviderSettings,
)
from harness_batch.models.catalog import (
    Catalog,
    catalog_names,
    entries,
    known,
    needs_list,
    of_catalog,
    with_known,
)
from harness_batch.models.catalog_table import catalog_provider, limits_of, table
from harness_batch.models.price_list import packaged
from harness_batch.models.price_rows import price_rows

ANTHROPIC = ProviderSettings(
    name="anthropic", type="anthropic", base_url="https://api.anthropic.com"
)
OPENAI = ProviderSettings(name="openai", type="openai-chat", base_url="https://api.openai.com/v1")


@pytest.mark.parametrize(
    ("name", "url", "provider"),
    [
        ("anthropic", "https://api.anthropic.com", "anthropic"),
        # the host tells first
        ("openai", "https://openrouter.ai/api/v1", "openrouter"),
        ("mine", "https://team.openai.azure.com/openai/v1", "azure"),
        ("mine", "https://api.x.ai/v1", "x-ai"),
        ("mine", "https://API.DeepSeek.com", "deepseek"),
        # behind an address that nobody knows the name tells
        ("anthropic", "https://llm.example.invalid/anthropic", "anthropic"),
        ("anthropic", "http://127.0.0.1:4000", "anthropic"),
        ("mine", "http://127.0.0.1:8080/v1", None),
        ("mine", "https://notopenrouter.ai/v1", None),
        ("mine", None, None),
    ],
)
def test_a_provider_is_known_by_its_host_or_else_by_its_name(
    name: str, url: str | None, provider: str | None
) -> None:
    settings = ProviderSettings(name=name, type="openai-chat", base_url=url)
    assert catalog_provider(settings) == provider


@pytest.mark.parametrize("kind", ["scripted", "replay"])
def test_models_that_are_files_are_free_and_need_no_list(kind: str) -> None:
    settings = ProviderSettings(name="anthropic", type=kind)  # type: ignore[arg-type]  # a parameter
    assert not needs_list(settings, "claude-sonnet-5")
    prices = known(settings, "any.yaml").prices
    assert prices is not None
    assert prices.input == prices.output == 0


def test_a_model_has_limits_abilities_and_prices() -> None:
    info = known(ANTHROPIC, "claude-sonnet-4-5-20250929")
    assert (info.context, info.output) == (200_000, 64_000)
    assert info.abilities == Abilities(tools=True, images=True, reasoning=True, temperature=True)
    assert info.prices is not None
    assert info.prices.source == "catalog"
    assert info.prices.version == packaged().version
    assert info.prices.of(200_000).input == Decimal(3)
    assert info.prices.of(200_001).input == Decimal(6)
    assert info.prices.of(200_001).cache_write_1h == Decimal(12)


def test_nothing_is_made_up_for_an_unknown_model() -> None:
    for settings in (ANTHROPIC, ProviderSettings(name="mine", type="openai-chat")):
        assert known(settings, "no-such-model") == ModelInfo()


def test_what_our_token_counts_cannot_price_has_no_price() -> None:
    """Perplexity takes money for each request as well."""
    assert known(of_catalog("perplexity"), "sonar").prices is None


def test_the_configuration_wins_field_by_field() -> None:
    own = ModelInfo(
        output=1000, prices=Prices(cache_read=Decimal(1)), abilities=Abilities(images=False)
    )
    settings = evolve(ANTHROPIC, models={"claude-sonnet-4-5": own})
    info = known(settings, "claude-sonnet-4-5")
    assert (info.context, info.output) == (200_000, 1000)
    assert info.abilities == Abilities(tools=True, images=False, reasoning=True, temperature=True)
    assert info.prices is not None
    assert (info.prices.input, info.prices.cache_read) == (Decimal(3), Decimal(1))
    # a rate of one's own holds in every tier
    assert info.prices.of(300_000).cache_read == Decimal(1)
    assert info.prices.of(300_000).input == Decimal(6)
    assert info.prices.source == "config"
    dearer = evolve(own, prices=Prices(output=Decimal(1)))
    other = known(evolve(settings, models={"claude-sonnet-4-5": dearer}), "claude-sonnet-4-5")
    assert other.prices is not None
    assert other.prices.version != info.prices.version


def test_prices_that_are_complete_in_the_configuration_end_all_tiers_and_periods() -> None:
    one = Decimal(1)
    flat = Prices(input=one, output=one, cache_read=one, cache_write=one, cache_write_1h=one)
    own = ModelInfo(context=10, prices=flat)
    settings = evolve(ANTHROPIC, models={"claude-opus-4-6": own})
    assert not needs_list(settings, "claude-opus-4-6")
    info = known(settings, "claude-opus-4-6")
    assert info.periods == ()
    assert info.prices is not None
    assert info.prices.tiers == ()


def test_a_provider_of_the_users_own_needs_no_list() -> None:
    settings = ProviderSettings(
        name="mine",
        type="openai-chat",
        base_url="http://127.0.0.1:8080/v1",
        models={"m": ModelInfo(prices=Prices(input=Decimal(1), output=Decimal(2)))},
    )
    assert not needs_list(settings, "m")
    assert not needs_list(settings, "other")
    prices = with_known(settings, "m").models["m"].prices
    assert prices is not None
    assert prices.version is not None
    assert known(settings, "m") == with_known(settings, "m").models["m"]


def test_night_rates_hold_over_midnight() -> None:
    night = Prices(input=Decimal(1), version="night")
    day = Prices(input=Decimal(2), version="day")
    period = PricePeriod(prices=night, hours=(time(16, 30), time(0, 30)))
    info = ModelInfo(prices=day, periods=(period,))
    versions = {
        hour: found.version
        for hour in (0, 1, 16, 17, 23)
        if (found := info.at(datetime(2026, 5, 1, hour, tzinfo=UTC)).prices)
    }
    assert versions == {0: "night", 1: "day", 16: "day", 17: "night", 23: "night"}


def test_resold_models_have_the_limits_of_their_makers_and_the_resellers_prices() -> None:
    router = ProviderSettings(
        name="router", type="openai-chat", base_url="https://openrouter.ai/api/v1"
    )
    info = known(router, "anthropic/claude-opus-4.5")
    assert (info.context, info.output) == (200_000, 64_000)
    assert info.prices is not None
    assert limits_of("openrouter", "anthropic/claude-opus-4.5:floor") == limits_of(
        "anthropic", "claude-opus-4-5"
    )
    assert limits_of("azure", "gpt-5") == limits_of("openai", "gpt-5")


def test_each_rate_is_a_row_and_those_of_tiers_say_so() -> None:
    info = known(ANTHROPIC, "claude-sonnet-4-5")
    assert info.prices is not None
    (ref,) = (e.ref for e in entries(ANTHROPIC) if e.ref.model == "claude-sonnet-4-5")
    rows = {row.unit: row.usd_per_mtok for row in price_rows(ref, info.prices)}
    assert rows["input"] == Decimal(3)
    assert rows["cache_write_1h>200000"] == Decimal(12)
    assert len(rows) == 10


def test_prices_of_different_times_have_different_versions() -> None:
    info = known(ANTHROPIC, "claude-opus-4-6")
    versions = [info.prices, *(period.prices for period in info.periods)]
    names = [prices.version for prices in versions if prices is not None]
    assert len(names) == len(set(names)) == 2
    assert names[1] == f"{packaged().version}@2026-03-13"


def test_a_model_is_missing_only_where_that_is_certain() -> None:
    catalog = Catalog()
    assert catalog.has(ANTHROPIC, "claude-sonnet-5")
    assert not catalog.has(ANTHROPIC, "claude-sonet-5")
    assert "claude-sonnet-5" in catalog.names(ANTHROPIC)
    gateway = evolve(ANTHROPIC, base_url="http://127.0.0.1:1", configured_base_url=True)
    assert catalog.has(gateway, "claude-sonet-5")
    assert catalog.has(evolve(ANTHROPIC, models={"brand-new": ModelInfo()}), "brand-new")
    assert catalog.has(ProviderSettings(name="mine", type="openai-chat"), "any")
    assert catalog.has(ProviderSettings(name="copilot", type="copilot"), "brand-new")


def test_the_table_fits_the_packaged_prices() -> None:
    """A misspelt provider or model in the table would go unnoticed for ever."""
    listed = table()
    assert set(listed.providers) <= set(packaged().names())
    assert set(listed.providers) <= set(catalog_names())
    for name, provider in listed.providers.items():
        assert provider.hosts, name
        assert set(provider.vendors.values()) <= set(listed.providers), name
        for model, info in provider.models.items():
            assert info.context, model
            assert info.output, model
            assert info.output <= info.context, model
    current = {
        "anthropic": "claude-opus-5-5", "openai": "gpt-6.1-sol", "google": "gemini-2.5-pro",
        "deepseek": "deepseek-v4-pro", "mistral": "mistral-large-2512", "x-ai": "grok-4.6",
    }  # fmt: skip
    for name, model in current.items():
        info = known(of_catalog(name), model)
        assert info.output, model
        assert info.prices, model
