"""Providers from the merged trees: the built-in ones below, the user's on top."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness_batch.config.document import Document, Steps
from harness_batch.config.model_options import misplaced, options_of
from harness_batch.config.record import Abilities, ModelInfo, Prices, ProviderSettings
from harness_batch.errors import Fault

Tree = dict[str, Any]

OWN_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "copilot": "COPILOT_GITHUB_TOKEN",
}
"""Where the keys of the built-in providers are looked for when the configuration names nothing."""

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|credential", re.IGNORECASE)


_LOOKS_MADE_UP = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[!-~]{20,}")
"""The value of a header that is nobody's word: better masked than recorded."""


def built_in(environ: Mapping[str, str]) -> Tree:
    """Those that need no configuration, with the base URLs of the environment."""
    return {
        "anthropic": _hosted(environ, "anthropic", "ANTHROPIC", "https://api.anthropic.com"),
        "openai": _hosted(environ, "openai-chat", "OPENAI", "https://api.openai.com/v1"),
        "copilot": {"type": "copilot", "own_variable": OWN_VARIABLES["copilot"]},
        "openai-responses": _hosted(
            environ, "openai-responses", "OPENAI", "https://api.openai.com/v1"
        ),
        "scripted": {"type": "scripted"},
        "replay": {"type": "replay"},
    }


def _hosted(environ: Mapping[str, str], kind: str, prefix: str, base_url: str) -> Tree:
    named = environ.get(f"{prefix}_BASE_URL")
    return {
        "type": kind,
        "base_url": named or base_url,
        "configured_base_url": bool(named),
        "own_variable": f"{prefix}_API_KEY",
    }


def layered(below: Tree, above: Tree) -> Tree:
    """Deep merge; what stands above wins, lists are replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[key] = layered(old, value)
        else:
            merged[key] = value
    return merged


def with_declared(providers: Tree, declared: Tree) -> Tree:
    """One file's `provider` on top of what stood before."""
    merged = dict(providers)
    for name, tree in declared.items():
        old = merged.get(name, {})
        # Another kind of provider under a built-in name shares nothing with it, least its key.
        below = old if _same_vendor(tree.get("type", old.get("type")), old.get("type")) else {}
        own_url = {"configured_base_url": True} if "base_url" in tree else {}
        merged[name] = layered(below, {**tree, **own_url})
    return merged


def _same_vendor(new: str | None, old: str | None) -> bool:
    """OpenAI's two interfaces share address and key: `openai` may be told to speak the other."""
    vendors = {"openai-responses": "openai-chat"}
    return vendors.get(str(new), new) == vendors.get(str(old), old)


def provider_faults(providers: Tree, documents: Iterable[Document]) -> Iterable[Fault]:
    """What only the merged providers show: a missing type, a base URL that is none."""
    sources = tuple(documents)
    for name, tree in providers.items():
        if "type" not in tree:
            told = f"provider {name!r} needs 'type' (anthropic, openai-chat, openai-responses, ...)"
            yield _fault(sources, name, "type", told)
            continue
        for key in ("github_url", "github_api_url"):
            if tree.get(key) is not None and not _is_web_address(tree[key]):
                yield _fault(sources, name, key, f"provider {name!r}: {key} must be a web address")
        url = tree.get("base_url")
        if url is None and tree["type"] in {"anthropic", "openai-chat", "openai-responses"}:
            yield _fault(sources, name, "base_url", f"provider {name!r} needs 'base_url'")
        elif url is not None and not _is_web_address(url):
            told = f"provider {name!r}: base_url must be a web address, http://... or https://..."
            yield _fault(sources, name, "base_url", told)
        for header, value in tree.get("headers", {}).items():
            if not is_header(header, value):
                # Not the value: it may be a key.
                told = f"provider {name!r}: the header {header[:80]!r} cannot be sent"
                yield _fault(sources, name, ("headers", header), told)
        for path, told in misplaced(tree):
            yield _fault(sources, name, path, f"provider {name!r}: {told}")


def is_header(name: str, value: str) -> bool:
    """A header as HTTP takes it: a name without blanks, a value in plain ASCII on one line."""
    return _TOKEN.fullmatch(name) is not None and is_sendable(value)


def is_sendable(value: str) -> bool:
    """Fit for the value of a header."""
    return value.isascii() and value.isprintable()


def _is_web_address(url: str) -> bool:
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _fault(sources: tuple[Document, ...], name: str, key: str | Steps, told: str) -> Fault:
    """At the last file that says it, else the last that names the provider."""
    path = (key,) if isinstance(key, str) else tuple(key)
    for wanted in (("provider", name, *path), ("provider", name)):
        for document in reversed(sources):
            if wanted in document.places:
                return document.fault(wanted, told)
    variable = "ANTHROPIC_BASE_URL" if name == "anthropic" else "OPENAI_BASE_URL"
    return Fault(Path("environment"), 0, 0, f"{told} (from {variable})")


def settings(providers: Tree) -> dict[str, ProviderSettings]:
    """The records."""
    return {name: _settings(name, tree) for name, tree in providers.items()}


def _settings(name: str, tree: Tree) -> ProviderSettings:
    models = {model: _model(entry) for model, entry in tree.get("models", {}).items()}
    common, own = options_of(tree)
    told = {**tree, "models": models, "options": common, "model_options": own}
    return ProviderSettings(name=name, **told)


def _model(entry: Tree) -> ModelInfo:
    cost: Tree = {kind: Decimal(str(usd)) for kind, usd in entry.get("cost", {}).items()}
    return ModelInfo(
        context=entry.get("context"),
        output=entry.get("output"),
        prices=Prices(**cost) if cost else None,
        abilities=Abilities(**entry.get("abilities", {})),
    )


def secret_values(providers: Mapping[str, ProviderSettings]) -> Iterable[str]:
    """Keys, headers and parameters that carry one, and a password inside a base URL."""
    for provider in providers.values():
        if provider.api_key:
            yield provider.api_key
        for header, value in (*provider.headers.items(), *provider.query.items()):
            if value and (_SECRET_HEADER.search(header) or _LOOKS_MADE_UP.fullmatch(value)):
                yield value
                yield from (word for word in value.split()[1:2] if word)
        if provider.base_url and (password := urlsplit(provider.base_url).password):
            yield password
