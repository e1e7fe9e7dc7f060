"""The recipe's JSON Schema, and its verdict in words: every fault with its place and a mend.

The schema is the file recipe.schema.json beside this one; `harness-batch schema` prints it. Where
a part has a `title`, that is what messages say is expected.
"""

import json
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import cast

from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject
from harness_batch.recipe.source_map import Json, SourceMap, Trail, dotted

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}
_LONGEST_QUOTE = 40


@cache
def _text() -> str:
    return (resources.files(__package__) / "recipe.schema.json").read_text(encoding="utf-8")


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(_text()), registry=Registry())


def recipe_schema() -> JsonObject:
    """A fresh copy of the schema."""
    schema: JsonObject = json.loads(_text())
    return schema


def schema_faults(document: JsonObject, source: SourceMap) -> tuple[list[Fault], set[str]]:
    """All faults, and the top-level keys that have one: what is left is sound."""
    faults: list[Fault] = []
    unsound: set[str] = set()
    for error in _leaves(_validator().iter_errors(document)):
        for trail, fault in _worded(error, source):
            faults.append(fault)
            unsound.update(str(step) for step in trail[:1])
    return faults, unsound


def did_you_mean(word: str, known: list[str]) -> str:
    """`; did you mean ...?` with the nearest known word, or nothing."""
    near = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""


def kind(value: object) -> str:
    """The value in words: what people wrote, not the type of a programming language."""
    match value:
        case None | bool():
            words = json.dumps(value)
        case int() | float():
            words = f"the number {value}"
        case str() if not value:
            words = "an empty text"
        case str():
            short = value if len(value) <= _LONGEST_QUOTE else value[: _LONGEST_QUOTE - 3] + "..."
            words = f"the text {json.dumps(short, ensure_ascii=False)}"
        case list():
            words = "a list"
        case _:
            words = "a mapping"
    return words


def _leaves(errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    """The errors that say something: of alternatives the one that the value was meant for."""
    for error in errors:
        branches = _fitting(error) if error.validator == "anyOf" else []
        if len(branches) == 1 and not _is_word_of(error, branches[0]):
            yield from _leaves(iter(branches[0]))
        else:
            yield error


def _is_word_of(error: ValidationError, branch: list[ValidationError]) -> bool:
    """Whether a wrong word stands where there are other forms too: then all of them are told."""
    whole = [inner for inner in branch if inner.absolute_path == error.absolute_path]
    return [inner.validator for inner in whole] == ["enum"]


def _fitting(error: ValidationError) -> list[list[ValidationError]]:
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(int(inner.schema_path[0]), []).append(inner)
    depth = len(error.absolute_path)

    def misses(inner: ValidationError) -> bool:
        whole = len(inner.absolute_path) == depth
        foreign = inner.validator == "enum" and not isinstance(inner.instance, str)
        return whole and (inner.validator == "type" or foreign)

    return [branch for branch in branches.values() if not any(map(misses, branch))]


def _worded(error: ValidationError, source: SourceMap) -> Iterator[tuple[Trail, Fault]]:
    trail: Trail = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known, instance = _known(error), cast("JsonObject", error.instance)
        for key in instance:
            if key not in known and not key.startswith("x-"):
                here = (*trail, key)
                yield here, source.key_fault(here, _unknown(trail, key, known))
    elif error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
        here = (*trail, str(error.instance))
        yield here, source.key_fault(here, f"`{dotted(here)}` must be {_expected(error)}")
    else:
        name = f"`{dotted(trail)}`" if trail else "the recipe"
        word = _WORDS.get(str(error.validator))
        said = f"is refused: {error.message}" if word is None else word(error)
        yield trail, source.fault(trail, f"{name} {said}")


def _known(error: ValidationError) -> list[str]:
    schema: Json = error.schema
    return list(schema.get("properties", ()))


def _unknown(trail: Trail, key: str, known: list[str]) -> str:
    if key == "<<":
        return "merge keys (`<<`) are not part of YAML 1.2; write the entries out"
    where = f" in `{dotted(trail)}`" if trail else ""
    hint = did_you_mean(key, known)
    listed = f"; known are {', '.join(known)}" if not hint and len(known) < 12 else ""
    return f"unknown key `{key}`{where}{hint}{listed}"


def _expected(error: ValidationError) -> str:
    schema: Json = error.schema
    types: Json = error.validator_value
    if "title" in schema:
        return str(schema["title"])
    return " or ".join(_TYPES[t] for t in ([types] if isinstance(types, str) else types))


def _of_type(error: ValidationError) -> str:
    enums: list[Json] = [e.validator_value for e in error.context or () if e.validator == "enum"]
    words = [word for enum in enums for word in enum]
    hint = did_you_mean(error.instance, words) if isinstance(error.instance, str) else ""
    return f"must be {_expected(error)}, not {kind(error.instance)}{hint}"


def _one_of(error: ValidationError) -> str:
    limit: Json = error.validator_value
    words = [str(word) for word in limit]
    listed = ", ".join(words[:-1]) + (" or " if words[:-1] else "") + words[-1]
    hint = did_you_mean(error.instance, words) if isinstance(error.instance, str) else ""
    return f"must be {listed}, not {kind(error.instance)}{hint}"


def _lacking(error: ValidationError) -> str:
    limit: Json = error.validator_value
    missing = (key for key in limit if error.message.startswith(f"'{key}'"))
    return f"lacks `{next(missing)}`"


def _number_of_keys(error: ValidationError) -> str:
    known = _known(error)
    return f"must have exactly one of {', '.join(known)}" if known else "must not be empty"


_WORDS: dict[str, Callable[[ValidationError], str]] = {
    "type": _of_type,
    "anyOf": _of_type,
    "pattern": _of_type,
    "enum": _one_of,
    "required": _lacking,
    "minimum": lambda error: f"must be at least {error.validator_value}, not {error.instance}",
    "maximum": lambda error: f"must be at most {error.validator_value}, not {error.instance}",
    "exclusiveMinimum": lambda error: (
        f"must be more than {error.validator_value}, not {error.instance}"
    ),
    "minLength": lambda _: "must not be empty",
    "minItems": lambda _: "must not be empty",
    "maxLength": lambda error: f"must have at most {error.validator_value} characters",
    "uniqueItems": lambda _: "holds a value twice",
    "minProperties": _number_of_keys,
    "maxProperties": _number_of_keys,
}
"""Keyword of JSON Schema -> what to say when it does not hold."""
