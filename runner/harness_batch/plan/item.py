"""One item of the plan: everything decided, nothing run."""

from attrs import Factory, frozen

from harness_batch.agents.record import Agent, Equipment, OpeningPart
from harness_batch.errors import Fault
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.recipe.record import Recipe
from harness_batch.rules import Rule


@frozen(kw_only=True)
class Item:
    """A recipe with one row of its matrix, on one repository."""

    key: str
    """`recipe/axis=value,...`, with `@repo` when there are several; stable from night to night."""
    folder: str
    """The key as one path segment."""
    digest: str
    """Hash (blake2b, hex) of everything that changes the answer."""
    recipe: Recipe
    params: JsonObject
    matrix: JsonObject
    agent: Agent
    models: tuple[ModelRef, ...]
    """The model and its fallbacks, in order."""
    rules: tuple[Rule, ...]
    """The whole stack: defaults, config, agent, recipe, command line. The last match wins."""
    limits: Limits
    """Effective: the lowest of all who declare, defaults filled in."""
    repo: str
    """Absolute path of the repository."""
    ref: str
    base_sha: str | None
    """The pinned base commit; None for a repository without a commit."""
    small_model: ModelRef | None = None
    """Writes summaries; None: the model itself."""
    opening: tuple[OpeningPart, ...] = ()
    """The prompt taken apart, when the recipe calls a command; else empty."""
    equipment: Equipment = Factory(Equipment)
    """Agents, skills and commands that there are on this repository."""
    refusal: str | None = None
    """Why the session must end `errored` before any model call: a model that is not granted."""


@frozen(kw_only=True)
class Plan:
    """What a run would start, in order."""

    items: tuple[Item, ...] = ()
    warnings: tuple[Fault, ...] = ()
