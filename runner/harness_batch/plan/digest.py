"""The digest of an item: everything that changes the answer, and nothing that does not.

In: the rendered recipe, parameters, matrix values, agent, models (of a scripted one the script's
content), the rules' words, the limits that shape replies (steps, output_tokens), the base commit.
Out: where files lie, other limits, concurrency, transport, prices.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any

from attrs import fields, frozen, has

from harness_batch.agents.record import Agent, OpeningPart, Skill
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject
from harness_batch.recipe.record import (
    Check,
    Expectations,
    Extension,
    PatchRules,
    Recipe,
    SandboxWish,
    SubRecipe,
    WorkspaceWish,
)
from harness_batch.rules import Rule

_FORM = "harness-batch item 1"
_NOT_OF_THE_RECIPE = {
    Recipe: ("file", "limits", "models", "permissions", "agent", "command"),
    WorkspaceWish: ("repo", "ref"),
    SubRecipe: ("source",),
}
"""Fields that stand elsewhere in the digest, resolved, or that only say where things lie."""


@frozen(kw_only=True)
class Ingredients:
    """What goes into a digest."""

    recipe: Recipe
    params: JsonObject
    matrix: JsonObject
    agent: Agent
    models: tuple[str, ...]
    """Names; a scripted one by its content, see `script_name`."""
    small_model: str | None
    instructions: tuple[str, ...]
    rules: tuple[Rule, ...]
    limits: Limits
    base_sha: str | None
    opening: tuple[OpeningPart, ...] = ()
    """The template of a command, filled in."""
    skills: tuple[Skill, ...] = ()
    subagents: tuple[Agent, ...] = ()
    """Those that the session may start."""


def item_digest(ingredients: Ingredients) -> str:
    """32 hex digits; the order of keys in objects does not matter."""
    what: JsonObject = {
        "form": _FORM,
        "recipe": ingredients.recipe,
        "params": ingredients.params,
        "matrix": ingredients.matrix,
        "agent": _agent(ingredients.agent),
        "models": ingredients.models,
        "small_model": ingredients.small_model,
        "instructions": ingredients.instructions,
        "rules": _words(ingredients.rules),
        "limits": [ingredients.limits.steps, ingredients.limits.output_tokens],
        "base": ingredients.base_sha,
    }
    if ingredients.opening:
        what["opening"] = [[type(part).__name__, part] for part in ingredients.opening]
    if ingredients.skills:
        what["skills"] = [[s.name, s.description, s.body, s.trusted] for s in ingredients.skills]
    if ingredients.subagents:
        what["subagents"] = [
            {**_agent(agent), "model": agent.model, "steps": agent.steps}
            for agent in ingredients.subagents
        ]
    text = json.dumps(what, sort_keys=True, separators=(",", ":"), default=_plain)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _agent(agent: Agent) -> JsonObject:
    return {
        "name": agent.name,
        "prompt": agent.prompt,
        "temperature": agent.temperature,
        "rules": _words(agent.rules),
    }


def _words(rules: tuple[Rule, ...]) -> list[tuple[str, str, str]]:
    return [(rule.permission, rule.pattern, rule.action) for rule in rules]


def _reader(kind: type[Any]) -> Callable[[object], JsonObject]:
    left_out = _NOT_OF_THE_RECIPE.get(kind, ())
    names = [entry.name for entry in fields(kind) if entry.name not in left_out]
    # The first name twice, as attrgetter gives a bare value for a single one.
    values = attrgetter(*names, names[0])
    return lambda record: dict(zip(names, values(record), strict=False))


_READERS = {
    kind: _reader(kind)
    for kind in (Recipe, SandboxWish, WorkspaceWish, Check, Expectations, PatchRules, Extension)
}
"""Field values by name, prepared for the records that every recipe has: a plan may be long."""


def _plain(value: object) -> object:
    kind: type[Any] = type(value)
    if kind in _READERS:
        return _READERS[kind](value)
    if has(kind):
        return _reader(kind)(value)
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, Path):
        return value.as_posix()
    return str(value)


def script_name(path: str) -> str:
    """A scripted model's file by name and content, wherever it lies; by name when unreadable."""
    file = Path(path)
    try:
        content = blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return file.name
    return f"{file.name}:{content}"
