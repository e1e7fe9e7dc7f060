"""The recipe door: a file in, a `RecipeSource` out, or every fault of it at once.

Reading, schema, meaning and templates are judged in this order; what one of them finds unsound is
left out of the next, so that one mistake gives one message. A `RecipeSource` then gives the frozen
`Recipe` of each item. One thread at a time, since its templates share one budget.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject
from harness_batch.recipe.build import fields_of, rules_of, with_a_message
from harness_batch.recipe.file_text import read_small_text
from harness_batch.recipe.goose import normalised, unwrapped
from harness_batch.recipe.json_text import read_json
from harness_batch.recipe.meaning import Subject, after_rendering, before_rendering, meaning_faults
from harness_batch.recipe.not_yet import refusals
from harness_batch.recipe.parameters import declaration_faults, declared_parameters, resolved
from harness_batch.recipe.record import Parameter, Recipe
from harness_batch.recipe.schema import recipe_faults, recipe_schema
from harness_batch.recipe.source_map import Json, Reading, SourceMap, Trail
from harness_batch.recipe.sub_recipes import Above, SubRecipes, content_hash
from harness_batch.recipe.template_faults import (
    UNRENDERED,
    name_clashes,
    template_texts,
    trouble_fault,
    undefined_and_unused,
)
from harness_batch.recipe.templates import RecipeTemplates, Trouble, is_template
from harness_batch.recipe.yaml_text import read_yaml
from harness_batch.rules import Rule
from harness_batch.words import kind

ENDINGS = (".yaml", ".yml", ".json")
_TASK = {"prompt", "instructions"}
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]*)(?=\s|$)", re.ASCII)


def open_recipe(path: Path) -> "RecipeSource":
    """Read and check a recipe with its sub-recipes, without any value for its parameters.

    Raises: FaultyInput with all faults of the files.
    """
    return _open_below(path, Above((path.resolve(),)))


def _open_below(path: Path, above: Above) -> "RecipeSource":
    reading = _read(path)
    document, source, faults = unwrapped(reading)
    of_schema, unsound = recipe_faults(document, source)
    misread = {(fault.line, fault.column) for fault in reading.faults}
    faults += [*reading.faults, *(f for f in of_schema if (f.line, f.column) not in misread)]
    sound = {key: value for key, value in document.items() if key not in unsound}
    faults += refusals(sound, source)
    recipe, warnings = normalised(sound, source)
    faults += warnings
    folder = path.absolute().parent
    task_is_unclear = bool(unsound & _TASK or unsound - set(recipe_schema()["properties"]))
    keys = set(recipe) | (set() if task_is_unclear else _TASK)
    faults += meaning_faults(Subject(recipe, source, folder, before_rendering), keys)
    faults += declaration_faults(recipe, source)
    templates = RecipeTemplates(folder)
    subs = SubRecipes(folder, above, source, recipe.get("sandbox"), _open_below)
    faults += subs.faults(recipe.get("sub_recipes", []))
    if not unsound & UNRENDERED:
        faults += name_clashes(recipe, source)
        faults += undefined_and_unused(recipe, source, templates)
    _raise_errors(faults)
    return _opened(recipe, source, templates, _sorted(faults), subs)


def _opened(
    recipe: JsonObject,
    source: SourceMap,
    templates: RecipeTemplates,
    warnings: list[Fault],
    subs: SubRecipes,
) -> "RecipeSource":
    path, folder = source.file, subs.folder
    templated = frozenset(str(trail[0]) for trail, _ in template_texts(recipe)) - UNRENDERED
    constant = {key: value for key, value in recipe.items() if key not in templated}
    return RecipeSource(
        file=path,
        name=recipe.get("name", path.stem),
        parameters=declared_parameters(recipe),
        warnings=tuple(warnings),
        document=recipe,
        matrix=recipe.get("matrix"),
        rules=rules_of(recipe, source),
        source=source,
        templates=templates,
        folder=folder,
        templated=templated,
        constant=fields_of(constant, folder),
        sub_recipes=subs,
    )


def _read(path: Path) -> Reading:
    if path.suffix.lower() not in ENDINGS:
        message = f"a recipe's name ends in {', '.join(ENDINGS)}"
        raise FaultyInput([Fault(path, 0, 0, message)])
    text = read_small_text(path)
    reading = read_json(text, path) if path.suffix.lower() == ".json" else read_yaml(text, path)
    if not isinstance(reading.value, dict):
        empty = reading.value is None and len(reading.places) < 2
        message = (
            "the file is empty; a recipe needs at least a `prompt`"
            if empty
            else f"a recipe is a mapping of keys to values, not {kind(reading.value)}"
        )
        raise FaultyInput([*reading.faults, Fault(path, 1, 1, message)])
    return reading


def _called(prompt: str) -> str | None:
    """The command that the prompt calls, as it stands in the file: a value cannot call one."""
    found = _COMMAND.match(prompt.lstrip())
    return found[1] if found else None


def _sorted(faults: Iterable[Fault]) -> list[Fault]:
    unique = dict.fromkeys(faults)
    return sorted(unique, key=lambda fault: (str(fault.file), fault.line, fault.column))


def _raise_errors(faults: Iterable[Fault]) -> None:
    found = list(faults)
    if any(fault.severity == "error" for fault in found):
        raise FaultyInput(_sorted(found))


@frozen(kw_only=True)
class RecipeSource:
    """A checked recipe file whose templates are not rendered yet."""

    file: Path
    """As it was named."""
    name: str
    parameters: tuple[Parameter, ...]
    warnings: tuple[Fault, ...]
    document: JsonObject
    """Valid by the schema, goose's settings put where ours stand, `x-` keys dropped."""
    matrix: JsonObject | None
    """The declaration as written; it holds no templates."""
    rules: tuple[Rule, ...]
    """The declared permissions; keys are no templates, so all items have the same."""
    folder: Path = field()
    """Absolute; where includes, scripts and relative paths start."""
    _source: SourceMap = field(eq=False, repr=False)
    _templates: RecipeTemplates = field(eq=False, repr=False)
    _templated: frozenset[str] = field(repr=False)
    """Top-level keys with templates in their texts."""
    _constant: JsonObject = field(repr=False)
    """Fields of the record that no template has a part in."""
    _sub_recipes: SubRecipes = field(eq=False, repr=False)

    @property
    def declared(self) -> frozenset[str]:
        """Keys of the parameters."""
        return frozenset(parameter.key for parameter in self.parameters)

    @property
    def content(self) -> str:
        """Hash of the file and of the recipes that it uses, as they were read."""
        entries = self.document.get("sub_recipes", [])
        return content_hash(self.document, self._sub_recipes.contents(entries))

    def with_parameters(self, parameters: tuple[Parameter, ...]) -> "RecipeSource":
        """The same recipe with other declarations."""
        return evolve(self, parameters=parameters)

    def place(self, *path: str | int) -> tuple[int, int]:
        """Line and column (1-based) of a value, or of its nearest ancestor in the file."""
        place = self._source.place(path)
        return place.line, place.column

    def values(self, given: Mapping[str, object]) -> JsonObject:
        """Every parameter's value, typed, defaults filled in; what nobody declared is passed over.

        Raises: FaultyInput with all that are missing or wrong.
        """
        return resolved(self.parameters, given, self._source)

    def rendered(self, variables: Mapping[str, object]) -> Recipe:
        """The recipe of one item. `variables` are parameters and matrix values by name.

        Raises: FaultyInput for templates that fail with these values, and for what they make.
        """
        changed = self._rendered(self._templated, variables)
        faults, unsound = recipe_faults(changed, self._source)
        sound = {key: value for key, value in changed.items() if key not in unsound}
        faults += refusals(sound, self._source)
        subject = Subject({**self.document, **sound}, self._source, self.folder, after_rendering)
        faults += meaning_faults(subject, set(sound))
        _raise_errors(faults)
        fields = {**self._constant, **fields_of(changed, self.folder)}
        entries = subject.document.get("sub_recipes")
        if entries:
            fields["sub_recipes"] = self._sub_recipes.records(entries)
        recipe = Recipe(
            file=self.file,
            name=self.name,
            permissions=self.rules,
            command=_called(self.document.get("prompt", "")),
            **fields,
        )
        return with_a_message(recipe)

    def _rendered(self, keys: frozenset[str], variables: Mapping[str, object]) -> JsonObject:
        self._templates.begin()
        seen = {**variables, "recipe_dir": str(self.folder)}
        faults: list[Fault] = []

        def said(value: Json, trail: Trail) -> Json:
            match value:
                case str() if is_template(value):
                    text = self._templates.rendered(value, seen)
                    if isinstance(text, Trouble):
                        faults.append(trouble_fault(self._source, trail, text))
                        return value
                    return text
                case dict():
                    return {key: said(inner, (*trail, key)) for key, inner in value.items()}
                case list():
                    return [said(inner, (*trail, at)) for at, inner in enumerate(value)]
                case _:
                    return value

        parts = {key: said(self.document[key], (key,)) for key in sorted(keys)}
        _raise_errors(faults)
        return parts
