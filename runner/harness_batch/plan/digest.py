"""The digest of an item: everything that changes the answer, and nothing that does not.

In: the rendered recipe, parameters, matrix values, agent, models with their options (of a scripted
one the script's content), the rules' words, the limits that shape replies (steps, output_tokens),
the base commit.
Out: where files lie, other limits, concurrency, transport, prices.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any

from attrs import Factory, define, fields, has

from harness_batch.agents.record import Agent
from harness_batch.config.model_options import ModelOptions
from harness_batch.config.record import Config
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.plan.choice import FREE
from harness_batch.plan.item import Item
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


@define
class Digester:
    """Digests the items of one plan; scripts of scripted models are read once."""

    config: Config
    _scripts: dict[str, str] = Factory(dict)
    """Scripted model file -> its name in digests."""

    def digest(self, item: Item) -> str:
        """32 hex digits; the order of keys in objects does not matter."""
        what: JsonObject = {
            "form": _FORM,
            "recipe": item.recipe,
            "params": item.params,
            "matrix": item.matrix,
            "agent": _agent(item.agent),
            "models": [self._name(model) for model in item.models],
            "small_model": self._name(item.small_model) if item.small_model else None,
            "instructions": self.config.instructions,
            "rules": _words(item.rules),
            "limits": [item.limits.steps, item.limits.output_tokens],
            "base": item.base_sha,
            **_of_equipment(item),
            **self._options(item),
        }
        text = json.dumps(what, sort_keys=True, separators=(",", ":"), default=_plain)
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def _options(self, item: Item) -> JsonObject:
        """How its models are asked; nothing where that is left to the providers."""
        named = [*item.models, *([item.small_model] if item.small_model else [])]
        told = {
            str(ref): self.config.providers[ref.provider].options_of(ref.model) for ref in named
        }
        asked = {name: options for name, options in told.items() if options != ModelOptions()}
        return {"options": asked} if asked else {}

    def _name(self, ref: ModelRef) -> str:
        if self.config.providers[ref.provider].type not in FREE:
            return str(ref)
        if ref.model not in self._scripts:
            self._scripts[ref.model] = script_name(ref.model)
        return f"{ref.provider}/{self._scripts[ref.model]}"


def _of_equipment(item: Item) -> JsonObject:
    """What agents, skills and commands add; nothing where there are none."""
    what: JsonObject = {}
    if item.opening:
        what["opening"] = [[type(part).__name__, part] for part in item.opening]
    if item.equipment.skills:
        skills = item.equipment.skills.values()
        what["skills"] = [[s.name, s.description, s.body, s.trusted] for s in skills]
    if subagents := _subagents(item):
        what["subagents"] = [
            {**_agent(agent), "model": agent.model, "steps": agent.steps} for agent in subagents
        ]
    return what


def _subagents(item: Item) -> list[Agent]:
    """Those that some rule may let the session start; too many are no harm in a digest."""
    if not any(rule.permission == "task" and rule.action == "allow" for rule in item.rules):
        return []
    agents = item.equipment.agents
    return [agents[name] for name in sorted(agents) if agents[name].mode != "primary"]


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
