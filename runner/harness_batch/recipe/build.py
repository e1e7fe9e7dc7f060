"""From a checked document to the frozen record: nothing is decided here, only given its type.

What the document does not say keeps the record's own default, so that no default is stated twice.
"""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from attrs import evolve
from cattrs import Converter

from harness_batch.limits import Limits
from harness_batch.messages import JsonObject
from harness_batch.recipe.durations import seconds
from harness_batch.recipe.not_yet import served
from harness_batch.recipe.record import (
    Check,
    Expectations,
    Extension,
    PatchRules,
    Recipe,
    RetryRule,
    SandboxWish,
    WorkspaceWish,
)
from harness_batch.recipe.source_map import Json, SourceMap
from harness_batch.rules import Rule

_FILES = ("scripted/", "replay/")
"""Models that are files beside the recipe."""


def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=False)
    converter.register_structure_hook(Decimal, lambda value, _: Decimal(str(value)))
    converter.register_structure_hook(float, lambda value, _: seconds(value))
    return converter


_CONVERTER = _converter()
"""Every float of these records is a number of seconds."""


def rules_of(document: JsonObject, source: SourceMap) -> tuple[Rule, ...]:
    """The declared permissions in written order, each with its own line as source."""
    rules = []
    for permission, value in document.get("permissions", {}).items():
        patterns: JsonObject = {"*": value} if isinstance(value, str) else value
        for pattern, action in patterns.items():
            line = source.key_place(("permissions", permission, pattern)).line
            rules.append(Rule(permission, pattern, action, f"recipe:{source.file}:{line}"))
    return tuple(rules)


def fields_of(part: JsonObject, folder: Path) -> JsonObject:
    """The record's fields that a part of a valid, normalised and rendered document says."""
    return {name: make(part[key], folder) for key, (name, make) in _FIELDS.items() if key in part}


def with_a_message(recipe: Recipe) -> Recipe:
    """Make instructions the message when there is no prompt: goose allows that, models do not."""
    if recipe.prompt.strip():
        return recipe
    return evolve(recipe, prompt=recipe.instructions, instructions="")


def _same(value: Json, _folder: Path) -> Json:
    return value


def _tuple(value: Json, _folder: Path) -> tuple[str, ...]:
    return tuple(value)


def _as(kind: Json) -> Callable[[Json, Path], Json]:
    return lambda value, _folder: _CONVERTER.structure(value, kind)


def _model(text: Json, folder: Path) -> str:
    provider, slash, file = str(text).partition("/")
    return f"{provider}/{folder / file}" if provider + slash in _FILES else str(text)


def _models(texts: Json, folder: Path) -> tuple[str, ...]:
    return tuple(_model(text, folder) for text in texts)


def _temperature(settings: Json, _folder: Path) -> float | None:
    return settings.get("temperature")  # type: ignore[no-any-return] # a number by the schema


def _response(response: Json, _folder: Path) -> JsonObject | None:
    return response.get("json_schema")  # type: ignore[no-any-return] # a mapping by the schema


def _retry(retry: Json, _folder: Path) -> RetryRule:
    checks = [check["command"] for check in retry.get("checks", ())]
    return _CONVERTER.structure({**retry, "checks": checks}, RetryRule)


def _sandbox(wish: Json, _folder: Path) -> SandboxWish:
    said: JsonObject = {k: tuple(v) if isinstance(v, list) else v for k, v in wish.items()}
    return SandboxWish(**said)


def _extensions(entries: Json, _folder: Path) -> tuple[Extension, ...]:
    names = (entry["name"] for entry in entries if served(entry))
    return tuple(Extension(type="builtin", name=name) for name in names)


_FIELDS: dict[str, tuple[str, Callable[[Json, Path], Json]]] = {
    "title": ("title", _same),
    "description": ("description", _same),
    "instructions": ("instructions", _same),
    "prompt": ("prompt", _same),
    "model": ("models", _models),
    "small_model": ("small_model", _model),
    "agent": ("agent", _same),
    "settings": ("temperature", _temperature),
    "on_denial": ("on_denial", _same),
    "sandbox": ("sandbox", _sandbox),
    "env": ("env", _tuple),
    "workspace": ("workspace", _as(WorkspaceWish)),
    "limits": ("limits", _as(Limits)),
    "context": ("context", _tuple),
    "checks": ("checks", _as(tuple[Check, ...])),
    "expect": ("expect", _as(Expectations)),
    "patch": ("patch", _as(PatchRules)),
    "response": ("response_schema", _response),
    "extensions": ("extensions", _extensions),
    "retry": ("retry", _retry),
}
"""Key of the document -> field of the record, and how its value is made."""
