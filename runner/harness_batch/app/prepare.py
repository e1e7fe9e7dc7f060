"""From the words of the command line to a plan: doors opened, bases pinned, nothing started.

Raises UserError for everything the user can mend; all faults of all recipes at once.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from attrs import evolve, frozen

from harness_batch.app.child_faults import child_faults
from harness_batch.app.options import Inputs
from harness_batch.app.places import history_of
from harness_batch.app.preflight import preflight
from harness_batch.app.repository_files import GitFiles
from harness_batch.app.reviewed import recipe_to_open
from harness_batch.app.shelves import Library
from harness_batch.config.record import Config
from harness_batch.engine.prompt import ProjectFile
from harness_batch.errors import Fault, FaultyInput, GitError, UsageError
from harness_batch.messages import JsonObject
from harness_batch.models.catalog import Catalog
from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.lint import lint, unknown_permission
from harness_batch.plan.build import build_plan
from harness_batch.plan.child_items import ChildItems
from harness_batch.plan.choice import Chooser
from harness_batch.plan.inputs import Overrides, RepoBase
from harness_batch.plan.item import Item, Plan
from harness_batch.plan.shards import Cut
from harness_batch.recipe.door import RecipeSource, open_recipe
from harness_batch.recipe.file_text import read_small_text
from harness_batch.recipe.parameter_file import read_parameters
from harness_batch.recipe.places import find_recipe
from harness_batch.rules import Rule
from harness_batch.workspace.repository import Repository, discover, resolve_base


@frozen(kw_only=True)
class Prepared:
    """A plan with what it was made from."""

    plan: Plan
    config: Config
    repositories: dict[str, Repository]
    """By the path that items name."""
    notes: Callable[[Item], tuple[ProjectFile, ...]]
    """What the system prompt of an item's session quotes."""
    child_items: ChildItems
    cut: Cut | None = None
    """Who takes what, when several machines share the run."""


def prepare(inputs: Inputs, config: Config) -> Prepared:
    """Open every other door and make the plan. Raises: UserError, GitError."""
    sources, replaced = _open_all(inputs)
    given = _given(inputs)
    repositories: dict[str, Repository] = {}
    bases = {source.file: _bases(source, inputs, repositories) for source in sources}
    library = Library(inputs, config, repositories)
    cli = _overrides(inputs)
    plan = build_plan(
        [(source, _declared(source, given)) for source in sources],
        config=config,
        equipment=library.equipment,
        repos=lambda source: bases[source.file],
        cli=cli,
        default_rules=DEFAULT_RULES,
        files=GitFiles(repositories, history_of(inputs.db, inputs.cwd)),
        models=Catalog(),
    )
    chooser = Chooser(config=config, agents={}, cli=cli, known=Catalog())
    child_items = ChildItems(chooser=chooser)
    for item in plan.items:
        library.notes(item)  # read now: a fault of git must end nothing that runs
    linted = (
        *_lint(plan.items),
        *child_faults(plan.items, child_items),
        *preflight(plan.items, child_items, config),
    )
    warnings = dict.fromkeys((*replaced, *plan.warnings, *library.warnings, *linted))
    return Prepared(
        plan=evolve(plan, warnings=tuple(warnings)),
        config=config,
        repositories=repositories,
        notes=library.notes,
        child_items=child_items,
    )


def _open_all(inputs: Inputs) -> tuple[list[RecipeSource], list[Fault]]:
    """The recipes, and warnings where another file is opened than was named."""
    sources: list[RecipeSource] = []
    faults: list[Fault] = []
    replaced: list[Fault] = []
    for word in inputs.recipes:
        file, warnings = recipe_to_open(find_recipe(word, inputs.cwd), inputs)
        replaced += warnings
        try:
            sources.append(open_recipe(file))
        except FaultyInput as error:
            faults += error.faults
    if faults:
        raise FaultyInput(faults)
    return sources, replaced


def _given(inputs: Inputs) -> JsonObject:
    given: JsonObject = {}
    for file in inputs.parameter_files:
        given |= read_parameters(inputs.cwd / file)
    return given


def _declared(source: RecipeSource, given: JsonObject) -> JsonObject:
    return {key: value for key, value in given.items() if key in source.declared}


def _overrides(inputs: Inputs) -> Overrides:
    return Overrides(
        model=inputs.model,
        agent=inputs.agent,
        limits=inputs.limits,
        rules=tuple(_cli_rule(action, text) for action, text in inputs.rules),
        only=inputs.only,
        parameters=dict(inputs.parameters),
    )


def _cli_rule(action: str, text: str) -> Rule:
    permission, _, pattern = text.partition(":")
    if not permission:
        raise UsageError(f"--{action} {text!r}: write PERMISSION or PERMISSION:PATTERN")
    if unknown := unknown_permission(permission):
        raise UsageError(f"--{action} {text}: {unknown}")
    return Rule(permission, pattern or "*", "allow" if action == "allow" else "deny", "cli")


def _bases(
    source: RecipeSource, inputs: Inputs, repositories: dict[str, Repository]
) -> Sequence[RepoBase]:
    wish = source.document.get("workspace") or {}
    ref = inputs.ref or wish.get("ref", "HEAD")
    words = list(_repo_words(inputs)) or [wish.get("repo", ".")]
    return [_base(word, ref, inputs.cwd, repositories) for word in words]


def _base(word: str, ref: str, cwd: Path, repositories: dict[str, Repository]) -> RepoBase:
    """Raises: UsageError for what the user named wrongly: nothing has been started yet."""
    try:
        repository = discover(cwd / Path(word).expanduser())
        base_sha = resolve_base(repository, ref)
    except GitError as error:
        raise UsageError(str(error)) from error
    repositories[str(repository.path)] = repository
    return RepoBase(repository.path, ref, base_sha)


def _repo_words(inputs: Inputs) -> Iterable[str]:
    for word in inputs.repos:
        if word.startswith("@"):
            yield from _listed(inputs.cwd / word[1:])
        else:
            yield word


def _listed(file: Path) -> Iterable[str]:
    try:
        lines = read_small_text(file).splitlines()
    except FaultyInput as error:
        raise UsageError(f"--repo @{error}") from error
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def _lint(items: Iterable[Item]) -> Iterable[Fault]:
    for item in items:
        for finding in lint(item.rules):
            yield _as_fault(finding.rule, finding.message, item.recipe.file)


def _as_fault(rule: Rule, message: str, file: Path) -> Fault:
    kind, _, place = rule.source.partition(":")
    if kind == "recipe":
        path, _, line = place.rpartition(":")
        return Fault(Path(path), int(line), 1, message, "warning")
    if kind == "config":
        return Fault(Path(place), 0, 0, message, "warning")
    return Fault(file, 0, 0, f"{message} ({rule.source})", "warning")
