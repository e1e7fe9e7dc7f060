"""From a checked document to the frozen record: nothing is decided here, only given its type."""

from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

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
    SandboxWish,
    WorkspaceWish,
)
from harness_batch.recipe.source_map import SourceMap
from harness_batch.rules import Rule

_Record = TypeVar("_Record")
_SCRIPTED = "scripted/"


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
        patterns = {"*": value} if isinstance(value, str) else value
        for pattern, action in patterns.items():
            line = source.key_place(("permissions", permission, pattern)).line
            rules.append(Rule(permission, pattern, action, f"recipe:{source.file}:{line}"))
    return tuple(rules)


def recipe_of(
    document: JsonObject, *, file: Path, name: str, folder: Path, rules: tuple[Rule, ...]
) -> Recipe:
    """The record of a document that is valid, normalised and rendered."""
    prompt, instructions = document.get("prompt", ""), document.get("instructions", "")
    if not prompt.strip():  # goose allows a recipe of instructions alone; models want a message
        prompt, instructions = instructions, ""
    small = document.get("small_model")
    return Recipe(
        file=file,
        name=name,
        title=document.get("title", ""),
        description=document.get("description", ""),
        instructions=instructions,
        prompt=prompt,
        models=tuple(_model(text, folder) for text in document.get("model", ())),
        small_model=None if small is None else _model(small, folder),
        agent=document.get("agent", "build"),
        temperature=document.get("settings", {}).get("temperature"),
        permissions=rules,
        on_denial=document.get("on_denial", "continue"),
        sandbox=_sandbox(document.get("sandbox", {})),
        env=tuple(document.get("env", ())),
        workspace=_record(document.get("workspace", {}), WorkspaceWish),
        limits=_record(document.get("limits", {}), Limits),
        context=tuple(document.get("context", ())),
        checks=tuple(_record(check, Check) for check in document.get("checks", ())),
        expect=_record(document.get("expect", {}), Expectations),
        patch=_record(document.get("patch", {}), PatchRules),
        response_schema=document.get("response", {}).get("json_schema"),
        extensions=tuple(
            Extension(type="builtin", name=extension["name"])
            for extension in document.get("extensions", ())
            if served(extension)
        ),
    )


def _record(value: JsonObject, kind: type[_Record]) -> _Record:
    return _CONVERTER.structure(value, kind)


def _model(text: str, folder: Path) -> str:
    if not text.startswith(_SCRIPTED):
        return text
    return _SCRIPTED + str(folder / text.removeprefix(_SCRIPTED))


def _sandbox(wish: JsonObject) -> SandboxWish:
    network: Any = wish.get("network", "all")
    return SandboxWish(
        network=tuple(network) if isinstance(network, list) else network,
        declared_network="network" in wish,
        write=tuple(wish.get("write", ())),
        need=tuple(wish.get("need", ())),
        external=wish.get("external", False),
    )
