"""Today's rates of the models that a history has calls of, for `stats --reprice`."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from harness_batch.config.record import Config, Prices, ProviderSettings
from harness_batch.models.catalog import catalog_names, known, of_catalog
from harness_batch.store.reprice import NO_END, TodayRate


def todays_rates(
    models: Iterable[tuple[str, str]], config: Config, moment: datetime
) -> Iterator[TodayRate]:
    """The rates at that moment; none for a model whose price is not known.

    A provider that is not configured here is taken for the catalog's of that name.
    """
    for provider, model in models:
        settings = _settings(provider, config)
        prices = known(settings, model).at(moment).prices if settings else None
        if prices is not None:
            yield from _tiers(provider, model, prices)


def _settings(provider: str, config: Config) -> ProviderSettings | None:
    configured = config.providers.get(provider)
    if configured is not None:
        return configured
    return of_catalog(provider) if provider in catalog_names() else None


def _tiers(provider: str, model: str, prices: Prices) -> Iterator[TodayRate]:
    starts = [0, *(tier.above + 1 for tier in prices.tiers)]
    for start, end in zip(starts, [*starts[1:], NO_END], strict=True):
        rates = prices.of(start)
        yield TodayRate(
            provider=provider,
            model=model,
            from_tokens=start,
            to_tokens=end,
            input=rates.input,
            output=rates.output,
            cache_read=rates.cache_read,
            cache_write=rates.cache_write,
            cache_write_1h=rates.cache_write_1h,
            version=prices.version or prices.source,
        )
