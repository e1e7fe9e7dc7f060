"""goose's sub-recipes: files that a recipe offers as tools, opened and checked at its own door.

A sub-recipe's parameters become the tool's JSON Schema, less those that `values` fixes. It runs in
its parent's workspace and sandbox, so what it says of these is refused or has no effect. Calls run
one after the other in any case, which is all that `sequential_when_repeated` asks for.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from attrs import Factory, define, evolve, frozen

from harness_batch.errors import Fault, FaultyInput
from harness_batch.limits import MAX_CHILD_DEPTH
from harness_batch.messages import JsonObject
from harness_batch.recipe.parameters import Wrong, parsed
from harness_batch.recipe.record import Parameter, RecipeTemplate, SubRecipe
from harness_batch.recipe.source_map import Json, SourceMap, Trail
from harness_batch.recipe.templates import is_template
from harness_batch.words import dotted, nearest

TOOL_NAMES = (
    *("bash", "edit", "final_output", "glob", "grep", "lsp", "memory", "multiedit", "read"),
    *("skill", "task", "todo", "webfetch", "write"),
)
"""Names that tools of the house have, or will have."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_EFFECT: tuple[Trail, ...] = (
    *(("workspace",), ("patch",), ("env",), ("cache",), ("retry", "reset")),
    *(("expect", "patch"), ("expect", "max_files"), ("expect", "touches")),
)
_TYPES = {"number": "number", "boolean": "boolean"}


class Source(RecipeTemplate, Protocol):
    """A recipe that was opened as a sub-recipe."""

    @property
    def document(self) -> JsonObject:
        """As its door left it."""
        ...

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """What the door found odd."""
        ...

    def place(self, *path: str | int) -> tuple[int, int]:
        """Line and column of a value."""
        ...

    def with_parameters(self, parameters: tuple[Parameter, ...]) -> RecipeTemplate:
        """The same recipe with other declarations."""
        ...


@frozen
class Above:
    """The recipes that lead to this one, itself included, outermost first."""

    files: tuple[Path, ...]

    def below(self, file: Path) -> "Above":
        """For a recipe that this one uses."""
        return Above((*self.files, file.resolve()))

    def __str__(self) -> str:
        return " -> ".join(file.name for file in self.files)


@define
class SubRecipes:
    """The sub-recipes of one recipe, each file opened once."""

    folder: Path
    above: Above
    source: SourceMap
    sandbox: Json
    """The parent's own wish, as it is written."""
    opener: Callable[[Path, Above], Source]
    """Raises: FaultyInput."""
    _opened: dict[Path, Source | FaultyInput] = Factory(dict)

    def faults(self, entries: list[JsonObject]) -> Iterator[Fault]:
        """What is wrong with those whose texts are final."""
        if entries and len(self.above.files) > MAX_CHILD_DEPTH:
            message = f"sub-recipes nest at most {MAX_CHILD_DEPTH} deep: {self.above}"
            yield self.source.key_fault(("sub_recipes",), message)
            return
        names: set[str] = set()
        for at, entry in enumerate(entries):
            if is_template(entry["name"]) or is_template(entry["path"]):
                continue
            yield from self._name_faults(entry["name"], ("sub_recipes", at, "name"), names)
            opened = self._source(entry["path"], ("sub_recipes", at, "path"))
            if isinstance(opened, FaultyInput):
                yield from opened.faults
            else:
                yield from opened.warnings
                yield from self._use_faults(opened)
                yield from self._value_faults(entry, at, opened)

    def records(self, entries: list[JsonObject]) -> tuple[SubRecipe, ...]:
        """The rendered entries as records. Raises: FaultyInput."""
        errors = [fault for fault in self.faults(entries) if fault.severity == "error"]
        if errors:
            raise FaultyInput(errors)
        return tuple(self._record(entry, at) for at, entry in enumerate(entries))

    def contents(self, entries: list[JsonObject]) -> list[str]:
        """Hashes of the files that can be told before rendering."""
        settled = (entry["path"] for entry in entries if not is_template(entry["path"]))
        opened = (self._opened.get((self.folder / path).resolve()) for path in settled)
        return [one.content for one in opened if one and not isinstance(one, FaultyInput)]

    def _record(self, entry: JsonObject, at: int) -> SubRecipe:
        opened = self._source(entry["path"], ("sub_recipes", at, "path"))
        if isinstance(opened, FaultyInput):
            raise opened
        values: JsonObject = entry.get("values", {})
        parameters = tuple(
            _as_text_of_file(parameter)
            if parameter.input_type == "file" and parameter.key not in values
            else parameter
            for parameter in opened.parameters
        )
        told = opened.document
        return SubRecipe(
            name=entry["name"],
            description=entry.get("description")
            or told.get("description")
            or told.get("title", ""),
            values=values,
            parameters=parameters_schema(opened.parameters, values),
            content=opened.content,
            source=opened.with_parameters(parameters),
        )

    def _source(self, path: str, trail: Trail) -> Source | FaultyInput:
        file = self.folder / path
        known = file.resolve()
        if known not in self._opened:
            self._opened[known] = self._fresh(file, known, path, trail)
        return self._opened[known]

    def _fresh(self, file: Path, known: Path, path: str, trail: Trail) -> Source | FaultyInput:
        if known in self.above.files:
            message = f"`{path}` leads back to itself: {self.above.below(file)}"
            return FaultyInput([self.source.fault(trail, message)])
        if not file.is_file():
            message = f"there is no recipe `{path}` in {self.folder}"
            return FaultyInput([self.source.fault(trail, message)])
        try:
            return self.opener(file, self.above.below(file))
        except FaultyInput as error:
            return error

    def _name_faults(self, name: str, trail: Trail, names: set[str]) -> Iterator[Fault]:
        if not _NAME.fullmatch(name):
            message = f"`{name}` becomes a tool's name: 1 to 64 letters, digits, `_` and `-`"
            yield self.source.fault(trail, message)
        elif name in TOOL_NAMES:
            yield self.source.fault(trail, f"`{name}` is a tool already; choose another name")
        elif name in names:
            yield self.source.fault(trail, f"two sub-recipes have the name `{name}`")
        names.add(name)

    def _use_faults(self, opened: Source) -> Iterator[Fault]:
        document = opened.document
        if "matrix" in document:
            message = "a sub-recipe runs once a call: it cannot have a `matrix`"
            yield Fault(opened.file, *opened.place("matrix"), message)
        if document.get("sandbox", self.sandbox) != self.sandbox:
            message = "a sub-recipe runs in the sandbox of the recipe that uses it"
            told = f"{message}: declare the same `sandbox` there"
            yield Fault(opened.file, *opened.place("sandbox"), told)
        for trail in _NO_EFFECT:
            if not _says(document, trail):
                continue
            message = f"`{dotted(trail)}` has no effect in a sub-recipe: its parent's counts"
            yield Fault(opened.file, *opened.place(*trail), message, "warning")

    def _value_faults(self, entry: JsonObject, at: int, opened: Source) -> Iterator[Fault]:
        declared = {parameter.key: parameter for parameter in opened.parameters}
        for key, value in entry.get("values", {}).items():
            trail: Trail = ("sub_recipes", at, "values", key)
            parameter = declared.get(key)
            if parameter is None:
                hint = nearest(key, list(declared))
                message = f"`{entry['name']}` declares no parameter `{key}`{hint}"
                yield self.source.key_fault(trail, message)
            elif parameter.input_type != "file" and not is_template(str(value)):
                wrong = parsed(parameter, value)
                if isinstance(wrong, Wrong):
                    message = f"the parameter `{key}` of `{entry['name']}` {wrong.message}"
                    yield self.source.fault(trail, message)


def parameters_schema(parameters: tuple[Parameter, ...], preset: Mapping[str, Json]) -> JsonObject:
    """JSON Schema of the arguments that a model gives."""
    open_ones = [parameter for parameter in parameters if parameter.key not in preset]
    return {
        "type": "object",
        "properties": {parameter.key: _property(parameter) for parameter in open_ones},
        "required": [parameter.key for parameter in open_ones if _is_required(parameter)],
        "additionalProperties": False,
    }


def content_hash(document: JsonObject, below: list[str]) -> str:
    """Of a recipe with all that it uses, in hex."""
    text = json.dumps([document, below], sort_keys=True, default=str)
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _says(document: JsonObject, trail: Trail) -> bool:
    value: Json = document
    for step in trail:
        if step not in value:
            return False
        value = value[step]
    return True


def _is_required(parameter: Parameter) -> bool:
    if parameter.requirement == "required":
        return True
    return parameter.default is None and parameter.requirement == "user_prompt"


def _property(parameter: Parameter) -> JsonObject:
    about = parameter.description
    if parameter.input_type == "file":
        about = f"{about} (the text itself, not a path)".strip()
    if parameter.input_type == "date":
        about = f"{about} (YYYY-MM-DD)".strip()
    said: JsonObject = {"type": _TYPES.get(parameter.input_type, "string")}
    if about:
        said["description"] = about
    if parameter.input_type == "select":
        said["enum"] = list(parameter.options)
    if parameter.default is not None and not _is_required(parameter):
        said["default"] = parameter.default
    return said


def _as_text_of_file(parameter: Parameter) -> Parameter:
    """A model gives the text: what it names must not be read for it behind the rules' back."""
    default = None if _is_required(parameter) else ""
    return evolve(parameter, input_type="string", default=default)
