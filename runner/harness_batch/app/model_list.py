"""The catalog as `harness-batch models` shows it: which models there are, what they cost now."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal

from attrs import asdict, frozen

from harness_batch.config.record import Config, ModelInfo, Prices, ProviderSettings, Rates
from harness_batch.errors import UsageError
from harness_batch.messages import JsonObject
from harness_batch.models.catalog import Entry, catalog_names, entries, list_version, of_catalog
from harness_batch.models.catalog_table import table
from harness_batch.models.pricing import rates_of
from harness_batch.words import nearest

UNPRICED_TYPES = ("scripted", "replay")
"""Providers whose models are files."""

COLUMNS = (
    "model", "context", "output", "takes", "input_usd", "output_usd", "cache_read_usd",
    "cache_write_usd", "cache_write_1h_usd", "prices",
)  # fmt: skip


@frozen(kw_only=True)
class Shown:
    """One model as it is at a moment."""

    entry: Entry
    now: ModelInfo


def shown(
    config: Config, moment: datetime, *, provider: str | None, word: str | None
) -> tuple[Shown, ...]:
    """The models of a provider, configured or of the catalog; else of the configured ones.

    `word` keeps names that hold it, in any case; without a provider it is looked for everywhere.

    Raises: UsageError for a provider that nobody knows.
    """
    found: list[Shown] = []
    for settings in _providers(config, provider, everywhere=word is not None):
        for entry in entries(settings):
            if word is not None and word.lower() not in str(entry.ref).lower():
                continue
            if _talks(entry):
                found.append(Shown(entry=entry, now=entry.info.at(moment)))
    return tuple(found)


def _providers(config: Config, name: str | None, *, everywhere: bool) -> Iterator[ProviderSettings]:
    configured = {
        key: settings
        for key, settings in config.providers.items()
        if settings.type not in UNPRICED_TYPES
    }
    if name is None:
        yield from configured.values()
        for other in catalog_names() if everywhere else ():
            if other not in configured:
                yield of_catalog(other)
    elif name in configured:
        yield configured[name]
    elif name in catalog_names():
        yield of_catalog(name)
    else:
        known = sorted({*configured, *catalog_names()})
        raise UsageError(
            f"no provider `{name}`, neither configured nor in the catalog{nearest(name, known)} "
            f"(catalog: {', '.join(catalog_names())})"
        )


def _talks(entry: Entry) -> bool:
    """Not one that only embeds, draws or listens: its output is not paid by the token."""
    if {"config", "table"} & set(entry.sources):
        return True
    prices = entry.info.prices
    return prices is not None and prices.output is not None


def as_rows(models: Iterable[Shown]) -> Iterator[tuple[object, ...]]:
    """Rows of `COLUMNS`; prices in US dollars per million tokens, None is unknown."""
    for model in models:
        now = model.now
        rates: Rates = now.prices or Rates()
        abilities = [name for name, able in asdict(now.abilities).items() if able]
        yield (
            str(model.entry.ref),
            now.context,
            now.output,
            ", ".join(abilities) or None,
            *rates_of(rates).values(),
            _prices_in_words(now.prices),
        )


def _prices_in_words(prices: Prices | None) -> str:
    if prices is None:
        return "unknown"
    tiers = "".join(f", dearer over {tier.above:,} tokens" for tier in prices.tiers[:1])
    return f"{prices.version}{tiers}"


def as_json(models: Iterable[Shown]) -> JsonObject:
    """`{prices, table, models: [...]}`: versions of the sources, then each model."""
    return {
        "prices": list_version(),
        "table": table().date,
        "models": [_model_json(model) for model in models],
    }


def _model_json(model: Shown) -> JsonObject:
    now = model.now
    return {
        "model": str(model.entry.ref),
        "context": now.context,
        "output": now.output,
        "abilities": asdict(now.abilities),
        "prices": None if now.prices is None else _prices_json(now.prices),
        "periods": [
            {
                "since": period.since.isoformat() if period.since else None,
                "hours_utc": [f"{t:%H:%M}" for t in period.hours] if period.hours else None,
                "prices": _prices_json(period.prices),
            }
            for period in model.entry.info.periods
        ],
        "sources": list(model.entry.sources),
    }


def _prices_json(prices: Prices) -> JsonObject:
    return {
        **_rates_json(prices),
        "tiers": [{"above": tier.above, **_rates_json(tier)} for tier in prices.tiers],
        "source": prices.source,
        "version": prices.version,
        "valid_from": prices.valid_from.isoformat() if prices.valid_from else None,
    }


def _rates_json(rates: Rates) -> dict[str, float | None]:
    return {unit: _number(usd) for unit, usd in rates_of(rates).items()}


def _number(usd: Decimal | None) -> float | None:
    return None if usd is None else float(usd)
