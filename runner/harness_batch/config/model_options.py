"""How models are asked, as the configuration's `options` say it: by provider, by model on top."""

from collections.abc import Iterator
from typing import Any, Literal

from attrs import Factory, frozen

from harness_batch.messages import JsonObject

Tree = dict[str, Any]

ASKS_NOBODY = ("scripted", "replay")
"""Types that have no options."""
_ONLY_FOR = {
    "thinking_budget": ("anthropic",),
    "cache_ttl": ("anthropic",),
    "reasoning_summary": ("openai-responses",),
    "prompt_cache_key": ("openai-chat", "openai-responses", "copilot"),
}
"""Options that not every wire format knows."""


@frozen(kw_only=True)
class ModelOptions:
    """What requests say beside the conversation; None leaves it to the provider."""

    reasoning_effort: str | None = None
    """How hard to think: low, medium, high, ..."""
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = None
    thinking_budget: int | Literal["adaptive"] | None = None
    """The most tokens of thinking in one reply, or as many as the model sees fit."""
    cache_ttl: Literal["5m", "1h"] = "5m"
    """How long the provider keeps what all sessions of a recipe share."""
    prompt_cache_key: str | None = None
    body: JsonObject = Factory(dict)
    """Further fields of a request, as they are."""


def options_of(provider: Tree) -> tuple[ModelOptions, dict[str, ModelOptions]]:
    """Those of all models of a provider, and those of models that have their own."""
    common: Tree = provider.get("options", {})
    own = {
        name: ModelOptions(**_layered(common, entry["options"]))
        for name, entry in provider.get("models", {}).items()
        if "options" in entry
    }
    return ModelOptions(**common), own


def misplaced(provider: Tree) -> Iterator[tuple[tuple[str, ...], str]]:
    """Options that the provider's type does not know: where they stand, and what is wrong."""
    kind = str(provider["type"])
    places: dict[tuple[str, ...], Tree] = {("options",): provider.get("options", {})}
    for name, entry in provider.get("models", {}).items():
        places["models", name, "options"] = entry.get("options", {})
    for place, options in places.items():
        for key in options:
            types = _ONLY_FOR.get(key, ())
            if kind in ASKS_NOBODY:
                yield (*place, key), f"providers of type {kind} have no options"
            elif types and kind not in types:
                told = f"{key!r} is an option of type {' or '.join(types)}, not of {kind}"
                yield (*place, key), told


def _layered(below: Tree, above: Tree) -> Tree:
    merged = {**below, **above}
    if "body" in below and "body" in above:
        merged["body"] = {**below["body"], **above["body"]}
    return merged
