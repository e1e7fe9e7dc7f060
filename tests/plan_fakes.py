"""A recipe source in memory: `$name` in texts is replaced, as a template engine would."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from attrs import evolve, frozen

from harness_batch.errors import Fault, FaultyInput, GitError, UsageError
from harness_batch.messages import JsonObject
from harness_batch.plan.inputs import RepoBase
from harness_batch.plan.matrix import word
from harness_batch.recipe.record import Recipe


@frozen(kw_only=True)
class MemorySource:
    """Behaves as an opened recipe: parameters resolved, prompt and instructions rendered."""

    recipe: Recipe
    defaults: Mapping[str, object | None] = {}
    """Declared parameters; None is required."""
    matrix: JsonObject | None = None
    warnings: tuple[Fault, ...] = ()
    places: Mapping[tuple[str | int, ...], tuple[int, int]] = {}

    @property
    def file(self) -> Path:
        return self.recipe.file

    @property
    def name(self) -> str:
        return self.recipe.name

    @property
    def declared(self) -> frozenset[str]:
        return frozenset(self.defaults)

    def place(self, *path: str | int) -> tuple[int, int]:
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))

    def values(self, given: Mapping[str, object]) -> JsonObject:
        values = {**self.defaults, **given}
        missing = [key for key, value in values.items() if value is None]
        if missing:
            raise FaultyInput([Fault(self.file, 1, 1, f"parameter {key!r}") for key in missing])
        return values

    def rendered(self, variables: Mapping[str, object]) -> Recipe:
        words = {name: word(value) for name, value in variables.items()}
        try:
            return evolve(
                self.recipe,
                prompt=Template(self.recipe.prompt).substitute(words),
                instructions=Template(self.recipe.instructions).substitute(words),
            )
        except KeyError as error:
            raise FaultyInput([Fault(self.file, 3, 1, f"{error} is undefined")]) from None


@frozen
class MemoryFiles:
    """A repository's files and what changed, by ref."""

    files: tuple[str, ...] = ()
    changes: Mapping[str, tuple[str, ...]] = {}

    def paths(self, base: RepoBase, under: str) -> Sequence[str]:
        return [path for path in self.files if not under or path.startswith(f"{under}/")]

    def changed_since(self, base: RepoBase, ref: str) -> Sequence[str]:
        if ref not in self.changes:
            raise GitError(f"unknown revision {ref!r}")
        return self.changes[ref]

    def asked(self, sql: str, most: int) -> Sequence[JsonObject]:
        """The history knows one question: two rows."""
        if sql != "FROM failures":
            raise UsageError(f"the history refuses {sql}")
        return [{"item": "a", "times": 2}, {"item": "b", "times": 1.5}][:most]
