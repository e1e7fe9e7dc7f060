"""What a plan is made of, as the plan sees it: recipes, repositories, and the command line."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from attrs import Factory, frozen

from harness_batch.agents.record import Equipment
from harness_batch.errors import Fault
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject
from harness_batch.recipe.record import Recipe
from harness_batch.rules import Rule


class RecipeSource(Protocol):
    """A recipe file that follows its schema; the recipe door opens it."""

    @property
    def file(self) -> Path:
        """The recipe's file, absolute."""
        ...

    @property
    def name(self) -> str:
        """First part of every item key."""
        ...

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """What the door found odd."""
        ...

    @property
    def matrix(self) -> JsonObject | None:
        """The declaration as it stands in the file."""
        ...

    @property
    def declared(self) -> frozenset[str]:
        """Keys of the declared parameters."""
        ...

    def values(self, given: Mapping[str, object]) -> JsonObject:
        """Parameters resolved. Raises: FaultyInput."""
        ...

    def rendered(self, variables: Mapping[str, object]) -> Recipe:
        """Templates rendered. Raises: FaultyInput."""
        ...

    def place(self, *path: str | int) -> tuple[int, int]:
        """Line and column of a value, or of its nearest known ancestor."""
        ...


@frozen
class RepoBase:
    """A repository and the commit that its sessions start from."""

    path: Path
    ref: str
    base_sha: str | None
    """None for a repository without a commit."""


Bases = Callable[[RecipeSource], Sequence[RepoBase]]
"""The repositories of one recipe: each recipe may name its own `workspace.ref`."""


Equipped = Callable[[RepoBase], Equipment]
"""All that there is for sessions on a repository."""


class RepoFiles(Protocol):
    """What a matrix asks of a repository and its history. Paths are relative, with `/`."""

    def paths(self, base: RepoBase, under: str) -> Sequence[str]:
        """Files below the folder `under` (empty: all)."""
        ...

    def changed_since(self, base: RepoBase, ref: str) -> Sequence[str]:
        """Files that are there at the base and differ from `ref`. Raises: GitError."""
        ...

    def asked(self, sql: str, most: int) -> Sequence[JsonObject]:
        """What the history of runs answers, `most` rows at most. Raises: HarnessError."""
        ...


@frozen(kw_only=True)
class Overrides:
    """What the command line says; it wins over recipe, agent and configuration."""

    model: str | None = None
    agent: str | None = None
    limits: Limits = Factory(Limits)
    rules: tuple[Rule, ...] = ()
    """`--allow` and `--deny` in their order, with source `cli`."""
    only: tuple[str, ...] = ()
    """Globs on item keys."""
    parameters: Mapping[str, object] = Factory(dict)
    """`-p KEY=VALUE`; each recipe gets those it declares."""
