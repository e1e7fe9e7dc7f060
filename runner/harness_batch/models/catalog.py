"""What is known of a model, field by field: the configuration, our own table, the packaged prices.

Who says it first wins. What nobody says is None: an unknown price makes a call unpriced, never
free. Only models that need the packaged prices make them load (see `price_list`).
"""

import hashlib
from collections.abc import Collection, Iterator
from typing import Literal, TypeAlias

from attrs import asdict, evolve, frozen

from harness_batch.config.record import (
    Abilities,
    ModelInfo,
    Prices,
    ProviderSettings,
)
from harness_batch.messages import ModelRef
from harness_batch.models.catalog_table import catalog_provider, limits_of, table
from harness_batch.models.price_list import packaged
from harness_batch.models.pricing import FREE, completed, laid_over, rates_of

Source: TypeAlias = Literal["config", "table", "prices"]
"""The configuration, our own table, the packaged prices."""


@frozen(kw_only=True)
class Entry:
    """One line of the catalog."""

    ref: ModelRef
    info: ModelInfo
    """With the prices of all times."""
    sources: tuple[Source, ...]
    """Who knows the model."""


def needs_list(settings: ProviderSettings, model: str) -> bool:
    """Whether the packaged prices have to be loaded to know the model."""
    if catalog_provider(settings) is None:
        return False
    own = settings.models.get(model, ModelInfo())
    complete = own.prices is not None and None not in rates_of(own.prices).values()
    return not (complete and own.context is not None)


def known(settings: ProviderSettings, model: str) -> ModelInfo:
    """All that is known of a model, with the prices of all times."""
    own = settings.models.get(model, ModelInfo())
    if settings.type in ("scripted", "replay"):
        return own if own.prices is not None else evolve(own, prices=FREE)
    provider = catalog_provider(settings)
    if provider is None:
        return _merged(own, ModelInfo())
    below = limits_of(provider, model) or ModelInfo()
    if needs_list(settings, model):
        below = _merged(below, packaged().find(provider, model) or ModelInfo())
    return _merged(own, below)


def load() -> None:
    """Load the packaged prices; takes a while, so call it in a thread."""
    packaged()


def list_version() -> str:
    """Of the packaged prices."""
    return packaged().version


def is_loaded() -> bool:
    """Whether nobody has to wait for the packaged prices any more."""
    return packaged.cache_info().currsize > 0


@frozen
class Catalog:
    """Knows the models of configured providers."""

    def has(self, provider: ProviderSettings, model: str) -> bool:
        """False where the provider is a known one at its own address, and has no such model.

        What the configuration lists there is, and behind an address of the user's own there may be
        anything. What a Copilot account may use is GitHub's to say.
        """
        open_end = provider.configured_base_url or provider.type == "copilot"
        if model in provider.models or open_end:
            return True
        name = catalog_provider(provider)
        if name is None:
            return not provider.models
        return limits_of(name, model) is not None or packaged().find(name, model) is not None

    def names(self, provider: ProviderSettings) -> Collection[str]:
        """All names of the configuration and the catalog."""
        return [entry.ref.model for entry in entries(provider)]

    def info(self, provider: ProviderSettings, model: str) -> ModelInfo:
        """See `known`."""
        return known(provider, model)


def with_known(settings: ProviderSettings, model: str) -> ProviderSettings:
    """The provider with all that is known of one of its models."""
    return evolve(settings, models={**settings.models, model: known(settings, model)})


def entries(settings: ProviderSettings) -> Iterator[Entry]:
    """Every model that is known of a configured provider, by name."""
    provider = catalog_provider(settings)
    listed = dict(packaged().listed(provider)) if provider is not None else {}
    tabled = table().providers[provider].models if provider is not None else {}
    names = {name.lower(): name for name in (*tabled, *listed, *settings.models)}
    for name in sorted(names.values()):
        sources: dict[Source, bool] = {
            "config": name in settings.models,
            "table": provider is not None and limits_of(provider, name) is not None,
            "prices": provider is not None and packaged().find(provider, name) is not None,
        }
        yield Entry(
            ref=ModelRef(settings.name, name),
            info=known(settings, name),
            sources=tuple(source for source, there in sources.items() if there),
        )


def catalog_names() -> tuple[str, ...]:
    """Every provider that the catalog knows, configured or not."""
    return tuple(sorted({*table().providers, *packaged().names()}))


def of_catalog(provider: str) -> ProviderSettings:
    """A provider of the catalog as if it were configured, to look at."""
    return ProviderSettings(name=provider, type="openai-chat")


def _merged(over: ModelInfo, below: ModelInfo) -> ModelInfo:
    merged = ModelInfo(
        context=below.context if over.context is None else over.context,
        output=below.output if over.output is None else over.output,
        prices=below.prices,
        periods=below.periods,
        abilities=_abilities(over.abilities, below.abilities),
    )
    if over.prices is None:
        return merged
    return evolve(
        merged,
        prices=_overridden(over.prices, below.prices),
        periods=tuple(
            evolve(period, prices=_overridden(over.prices, period.prices))
            for period in below.periods
            if None in rates_of(over.prices).values()
        ),
    )


def _abilities(over: Abilities, below: Abilities) -> Abilities:
    said = {name: value for name, value in asdict(over).items() if value is not None}
    return evolve(below, **said)


def _overridden(over: Prices, below: Prices | None) -> Prices:
    """The configuration's rates in place of the catalog's, in every tier."""
    mixed = evolve(below or Prices(), source="config", valid_from=None)
    whole = None not in rates_of(over).values()
    tiers = () if whole else tuple(laid_over(over, tier) for tier in mixed.tiers)
    done = completed(laid_over(over, evolve(mixed, tiers=tiers)))
    return evolve(done, version=_digest(done))


def _digest(prices: Prices) -> str:
    figures = [rates_of(prices), *((tier.above, rates_of(tier)) for tier in prices.tiers)]
    digest = hashlib.blake2b(repr(figures).encode(), digest_size=4)
    return f"config-{digest.hexdigest()}"
