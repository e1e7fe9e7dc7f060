"""goose's recipes made ours: the Desktop wrapper taken off, settings put where ours stand.

Facts of goose's format (version 1.0.0): a Desktop file holds the recipe under `recipe:` beside
its own bookkeeping; `settings` names provider and model apart; `max_turns` bounds the model's
replies; `retry.reset_context` (true by default) is the opposite of our `retry.feedback`;
`platform` extensions `developer` and `todo` were `builtin` ones before.
"""

from collections.abc import Iterator
from copy import deepcopy

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject
from harness_batch.recipe.schema import recipe_schema
from harness_batch.recipe.source_map import Json, Reading, SourceMap, Trail

_OBJECTS = (
    "author",
    "settings",
    "response",
    "sandbox",
    "workspace",
    "limits",
    "expect",
    "patch",
    "retry",
)
_LISTS = ("parameters", "extensions", "checks")
_DESKTOP = ("name", "title", "description", "version", "author")
"""Keys that Desktop may keep beside `recipe:` although recipes know them too."""


def unwrapped(reading: Reading) -> tuple[JsonObject, SourceMap, list[Fault]]:
    """The recipe of the document, taken out of a Desktop file when it is one."""
    document: JsonObject = reading.value
    inner = document.get("recipe")
    if not isinstance(inner, dict):
        return document, SourceMap(reading.file, reading), []
    outside = SourceMap(reading.file, reading)
    ours = set(recipe_schema()["properties"]) - set(_DESKTOP)
    faults = [
        outside.key_fault((key,), f"`{key}` belongs inside `recipe`, where the recipe itself is")
        for key in document
        if key in ours
    ]
    return inner, SourceMap(reading.file, reading, ("recipe",)), faults


def normalised(document: JsonObject, source: SourceMap) -> tuple[JsonObject, list[Fault]]:
    """A copy in our own terms, `x-` keys dropped and `model` a list; warnings of what is lost.

    The document is valid by the schema.
    """
    recipe = deepcopy({key: value for key, value in document.items() if not key.startswith("x-")})
    for part in _free_keyed(recipe):
        for key in [key for key in part if key.startswith("x-")]:
            del part[key]
    warnings = list(_settings(recipe, source))
    _retry(recipe.get("retry", {}))
    if isinstance(recipe.get("model"), str):
        recipe["model"] = [recipe["model"]]
    return recipe, warnings


def _free_keyed(recipe: JsonObject) -> Iterator[JsonObject]:
    yield from (recipe[key] for key in _OBJECTS if key in recipe)
    for key in _LISTS:
        yield from recipe.get(key, ())
    yield from recipe.get("retry", {}).get("checks", ())


def _settings(recipe: JsonObject, source: SourceMap) -> Iterator[Fault]:
    settings: JsonObject = recipe.get("settings", {})
    provider, model = settings.pop("goose_provider", None), settings.pop("goose_model", None)
    if "model" not in recipe and provider and model:
        recipe["model"] = f"{provider}/{model}"
        source.stands_at(("model",), ("settings", "goose_model"))
    elif "model" not in recipe and (provider or model):
        given, lacks = (
            ("goose_provider", "goose_model") if provider else ("goose_model", "goose_provider")
        )
        trail: Trail = ("settings", given)
        message = f"`{given}` without `{lacks}` says nothing; the configuration's model is used"
        yield source.key_fault(trail, message, "warning")
    turns = settings.pop("max_turns", None)
    if turns is not None:
        limits: dict[str, Json] = recipe.setdefault("limits", {})
        if "steps" not in limits or turns < limits["steps"]:
            limits["steps"] = turns
            source.stands_at(("limits", "steps"), ("settings", "max_turns"))


def _retry(retry: JsonObject) -> None:
    """Name goose's `reset_context: false` as ours: the conversation goes on with what failed."""
    if not retry.pop("reset_context", True):
        retry.setdefault("feedback", True)
