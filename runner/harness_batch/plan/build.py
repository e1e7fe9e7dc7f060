"""Recipes x matrix rows x repositories -> items, each with everything decided.

All faults of all recipes are told at once; nothing is started, nothing is called.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import Factory, define, evolve, frozen

from harness_batch.agents.record import Agent, Equipment, OpeningPart
from harness_batch.config.record import Config
from harness_batch.errors import Fault, FaultyInput, UsageError
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.plan.choice import Chooser, Wrong, check_overrides
from harness_batch.plan.digest import Digester
from harness_batch.plan.inputs import (
    Bases,
    Equipped,
    Overrides,
    RecipeSource,
    RepoBase,
    RepoFiles,
)
from harness_batch.plan.item import Item, Plan
from harness_batch.plan.keys import folder_names, item_key, repo_names
from harness_batch.plan.known_models import CONFIGURED, KnownModels
from harness_batch.plan.matrix import rows
from harness_batch.plan.opening import Call, call_of
from harness_batch.plan.select import select
from harness_batch.recipe.record import Recipe
from harness_batch.rules import Rule
from harness_batch.words import nearest

__all__ = ["Overrides", "Plan", "RepoBase", "build_plan", "select"]

MAX_FAULTS = 100
"""Told at once; a template fault may come back in every row of a large matrix."""


def build_plan(
    sources: Sequence[tuple[RecipeSource, JsonObject]],
    *,
    config: Config,
    equipment: Equipped,
    repos: Bases,
    cli: Overrides,
    default_rules: tuple[Rule, ...],
    files: RepoFiles,
    models: KnownModels = CONFIGURED,
) -> Plan:
    """The items of all recipes, in the order given.

    With each source come its parameters as they were given (`--params`); `cli.parameters` win.
    `equipment` and `repos` are asked once for each repository and each recipe.

    Raises: FaultyInput for recipes, UsageError for the command line.
    """
    bases = [repos(source) for source, _ in sources]
    kits = {
        base: equipment(base) for base in dict.fromkeys(base for each in bases for base in each)
    }
    known = {name: agent for kit in kits.values() for name, agent in kit.agents.items()}
    chooser = Chooser(config=config, agents=known, cli=cli, known=models)
    check_overrides(chooser)
    _check_parameters(sources, cli)
    planning = _Planning(chooser, default_rules, files, kits, Digester(config))
    for (source, given), each in zip(sources, bases, strict=True):
        planning.plan(source, given, each)
    planning.check_keys()
    if planning.faults:
        raise FaultyInput(list(dict.fromkeys(planning.faults))[:MAX_FAULTS])
    folders = folder_names([draft.key for draft in planning.items])
    items = tuple(evolve(item, folder=folders[item.key]) for item in planning.items)
    warnings = [warning for kit in kits.values() for warning in kit.warnings]
    warnings += planning.warnings(source for source, _ in sources)
    return Plan(
        items=select(items, cli.only),
        warnings=tuple(dict.fromkeys((*config.warnings, *warnings))),
    )


def _none_of(source: RecipeSource) -> Fault:
    """Nothing to do is no fault (no file changed last night), but it may be a misspelt glob."""
    line, column = source.place("matrix")
    told = "`matrix` gives no session: no value of its axes, or `exclude` leaves none"
    return Fault(source.file, line, column, told, "warning")


def _check_parameters(sources: Sequence[tuple[RecipeSource, JsonObject]], cli: Overrides) -> None:
    declared = frozenset[str]().union(*(source.declared for source, _ in sources))
    known = f" (declared: {', '.join(sorted(declared)) or 'none'})"
    unknown = [
        f"-p {key}: no recipe declares it{nearest(key, declared)}{known}"
        for key in cli.parameters
        if key not in declared
    ]
    if unknown:
        raise UsageError("\n".join(unknown))


@frozen
class _Base:
    """A repository with its name in keys; None when it is the only one."""

    base: RepoBase
    name: str | None


@frozen(kw_only=True)
class _Decision:
    """What configuration, recipe and command line come to for one rendered recipe."""

    opening: tuple[OpeningPart, ...]
    agent: Agent
    models: tuple[ModelRef, ...]
    small: ModelRef | None
    limits: Limits
    rules: tuple[Rule, ...]
    refusal: str | None


@define
class _Planning:
    """Items and faults so far."""

    chooser: Chooser
    default_rules: tuple[Rule, ...]
    files: RepoFiles
    kits: Mapping[RepoBase, Equipment]
    digester: Digester
    items: list[Item] = Factory(list)
    faults: list[Fault] = Factory(list)
    origins: list[RecipeSource] = Factory(list)
    """The source of each item."""
    limits: dict[tuple[str, Limits], Limits] = Factory(dict)
    """Agent and declared limits -> effective ones: rows of a matrix rarely differ in them."""

    def plan(self, source: RecipeSource, given: JsonObject, repos: Sequence[RepoBase]) -> None:
        """Add one recipe's items, or its faults."""
        mine = {k: v for k, v in self.chooser.cli.parameters.items() if k in source.declared}
        try:
            params = source.values({**given, **mine})
            for base in _named(repos):
                for row in rows(source, base.base, self.files):
                    self._add(source, params, row, base)
        except FaultyInput as error:
            self.faults += error.faults

    def _add(self, source: RecipeSource, params: JsonObject, row: JsonObject, at: _Base) -> None:
        try:
            recipe = source.rendered({**params, **row})
        except FaultyInput as error:
            self.faults += error.faults
            return
        item = self._item(source, recipe, params, row, at)
        if isinstance(item, Wrong):
            line, column = source.place(item.key)
            self.faults.append(Fault(source.file, line, column, item.message))
        else:
            self.items.append(item)
            self.origins.append(source)

    def _item(
        self, source: RecipeSource, recipe: Recipe, params: JsonObject, row: JsonObject, at: _Base
    ) -> Item | Wrong:
        kit = self.kits[at.base]
        decided = self._decided(recipe, kit)
        if isinstance(decided, Wrong):
            return decided
        item = Item(
            key=item_key(source.name, row, at.name),
            folder="",
            digest="",
            recipe=recipe,
            params=params,
            matrix=row,
            agent=decided.agent,
            models=decided.models,
            rules=decided.rules,
            limits=decided.limits,
            repo=str(at.base.path),
            ref=at.base.ref,
            base_sha=at.base.base_sha,
            small_model=decided.small,
            opening=decided.opening,
            equipment=kit,
            refusal=decided.refusal,
        )
        return evolve(item, digest=self.digester.digest(item))

    def _decided(self, recipe: Recipe, kit: Equipment) -> _Decision | Wrong:
        chooser = evolve(self.chooser, agents=kit.agents)
        call = call_of(recipe, kit)
        if isinstance(call, Wrong):
            return call
        agent = chooser.agent(recipe, call.command)
        if isinstance(agent, Wrong):
            return agent
        return self._filled(recipe, chooser, call, agent)

    def _filled(
        self, recipe: Recipe, chooser: Chooser, call: Call, agent: Agent
    ) -> _Decision | Wrong:
        models, small = chooser.models(recipe, agent, call.command), chooser.small_model(recipe)
        if isinstance(models, Wrong):
            return models
        if isinstance(small, Wrong):
            return small
        limits = self._limits(recipe, agent)
        if wrong := chooser.unpriced((*models, *((small,) if small else ())), recipe, limits):
            return wrong
        return _Decision(
            opening=call.parts,
            agent=agent,
            models=models,
            small=small,
            limits=limits,
            rules=(
                *self.default_rules,
                *chooser.config.rules,
                *agent.granted,
                *recipe.permissions,
                *chooser.cli.rules,
            ),
            refusal=chooser.refusal((*models, *((small,) if small else ())), agent, recipe),
        )

    def _limits(self, recipe: Recipe, agent: Agent) -> Limits:
        known = (agent.name, recipe.limits)
        if known not in self.limits:
            self.limits[known] = self.chooser.limits(recipe, agent)
        return self.limits[known]

    def warnings(self, sources: Iterable[RecipeSource]) -> Iterator[Fault]:
        """Of the recipes' doors, and of recipes that came to nothing."""
        used = {id(source) for source in self.origins}
        for source in sources:
            yield from source.warnings
            if id(source) not in used:
                yield _none_of(source)

    def check_keys(self) -> None:
        """Two items with one key could not be told apart from night to night."""
        used = Counter(item.key for item in self.items)
        for item, source in zip(self.items, self.origins, strict=True):
            if used[item.key] > 1:
                self.faults.append(_twice(item, source))


def _twice(item: Item, source: RecipeSource) -> Fault:
    where = ("matrix",) if item.matrix else ("name",)
    mend = (
        "rows must differ in their values"
        if item.matrix
        else "give each recipe a `name` of its own, and each recipe and repository once"
    )
    told = f"more than one item has the key {item.key!r}: {mend}"
    return Fault(source.file, *source.place(*where), told)


def _named(repos: Sequence[RepoBase]) -> Iterator[_Base]:
    if len(repos) == 1:
        yield _Base(repos[0], None)
        return
    names = repo_names([base.path for base in repos])
    for base, name in zip(repos, names, strict=True):
        yield _Base(base, name)
