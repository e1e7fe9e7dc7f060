"""The small table of our own: whose host is whose, and limits and abilities of current models.

The packaged prices know no output limits and not every window; `catalog.json` fills that in, with
its date and the pages that it was read from. What it does not say is None: unknown.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from urllib.parse import urlsplit

from attrs import frozen

from harness_batch.config.record import Abilities, ModelInfo, ProviderSettings
from harness_batch.messages import JsonObject

_DATED = re.compile(r"-(latest|\d{8}|\d{4}-\d{2}-\d{2})$")
"""What providers append to a model's name for one of its versions."""

BY_TYPE = {"copilot": "github-copilot"}
"""Types of providers that only one vendor has."""


@frozen(kw_only=True)
class ListedProvider:
    """A provider as the catalog knows it."""

    hosts: tuple[str, ...]
    """Of its API; sub-domains count too."""
    models: Mapping[str, ModelInfo]
    """By name in lower case; without prices."""
    vendors: Mapping[str, str]
    """Whose models it resells: first part of its names (empty: the whole name) -> provider."""
    source: str | None
    """The page that the limits were read from."""


@frozen(kw_only=True)
class Table:
    """The whole file."""

    date: str
    """When it was last compared with its sources, ISO 8601."""
    providers: Mapping[str, ListedProvider]


@cache
def table() -> Table:
    """Read once, when first asked for."""
    text = files("harness_batch.models").joinpath("catalog.json").read_text(encoding="utf-8")
    tree: JsonObject = json.loads(text)
    providers = {name: _provider(entry) for name, entry in tree["providers"].items()}
    return Table(date=tree["date"], providers=providers)


def catalog_provider(settings: ProviderSettings) -> str | None:
    """Whose models a configured provider serves, as the catalog names it; None when unknown.

    The host tells first: `openai` with OpenRouter's address is OpenRouter. An address that nobody
    knows (a gateway) leaves the provider's own name to tell, so that Anthropic behind a company's
    proxy has Anthropic's limits and prices.
    """
    if settings.type in ("scripted", "replay"):
        return None
    if settings.type in BY_TYPE:
        return BY_TYPE[settings.type]
    host = (urlsplit(settings.base_url or "").hostname or "").lower()
    for name, provider in table().providers.items():
        if any(host == known or host.endswith(f".{known}") for known in provider.hosts):
            return name
    return settings.name if settings.name in table().providers else None


def limits_of(provider: str, model: str) -> ModelInfo | None:
    """Limits and abilities, without prices; None when the table does not have the model."""
    known = table().providers.get(provider)
    if known is None:
        return None
    for name in _names(model):
        if name in known.models:
            return known.models[name]
    vendor, slash, rest = model.partition("/")
    if "" in known.vendors:
        return limits_of(known.vendors[""], model)
    if slash and vendor in known.vendors:
        plain = rest.partition(":")[0]
        # Resellers write versions with dots where the vendor has dashes.
        return limits_of(known.vendors[vendor], plain) or limits_of(
            known.vendors[vendor], plain.replace(".", "-")
        )
    return None


def _names(model: str) -> Iterator[str]:
    """The name as it is, then without the mark of a version."""
    name = model.lower()
    yield name
    plain = _DATED.sub("", name)
    if plain != name:
        yield plain


def _provider(entry: JsonObject) -> ListedProvider:
    groups = entry.get("models", ())
    return ListedProvider(
        hosts=tuple(entry["hosts"]),
        models={name.lower(): _info(group) for group in groups for name in group["names"]},
        vendors=entry.get("vendors", {}),
        source=entry.get("source"),
    )


def _info(group: JsonObject) -> ModelInfo:
    known = {**dict.fromkeys(group["can"], True), **dict.fromkeys(group["cannot"], False)}
    return ModelInfo(context=group["context"], output=group["output"], abilities=Abilities(**known))
