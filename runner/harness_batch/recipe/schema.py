"""The recipe's JSON Schema, and its verdict in words: every fault with its place and a mend.

The schema is the file recipe.schema.json beside this one; `harness-batch schema` prints it. Where
a part has a `title`, that is what messages say is expected.
"""

import json
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject
from harness_batch.recipe.source_map import SourceMap, Trail, dotted

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


def kind(value: Any) -> str:
    """The value in words: what people wrote, not the type of a programming language."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str() if not value:
            return "an empty text"
        case str():
            short = value if len(value) <= _LONGEST_QUOTE else value[: _LONGEST_QUOTE - 3] + "..."
            return f"the text {json.dumps(short, ensure_ascii=False)}"
        case list():
            return "a list"
    return "a mapping"


def _leaves(errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    """The errors that say something: of alternatives the one whose type fits."""
    for error in errors:
        branches = _fitting(error) if error.validator == "anyOf" else []
        if len(branches) == 1:
            yield from _leaves(iter(branches[0]))
        else:
            yield error


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
        known = list(error.schema.get("properties", ()))
        for key in error.instance:
            if key not in known and not key.startswith("x-"):
                here = (*trail, key)
                yield here, source.key_fault(here, _unknown(trail, key, known))
    elif error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
        here = (*trail, str(error.instance))
        message = f"`{dotted(here)}` must be {error.schema['title']}"
        yield here, source.key_fault(here, message)
    else:
        yield trail, source.fault(trail, _message(error, trail))


def _unknown(trail: Trail, key: str, known: list[str]) -> str:
    if key == "<<":
        return "merge keys (`<<`) are not part of YAML 1.2; write the entries out"
    where = f" in `{dotted(trail)}`" if trail else ""
    hint = did_you_mean(key, known)
    listed = f"; known are {', '.join(known)}" if not hint and len(known) < 12 else ""
    return f"unknown key `{key}`{where}{hint}{listed}"


def _message(error: ValidationError, trail: Trail) -> str:
    name = f"`{dotted(trail)}`" if trail else "the recipe"
    value, limit, found = error.instance, error.validator_value, kind(error.instance)
    match error.validator:
        case "type" | "anyOf" | "pattern":
            return f"{name} must be {_expected(error)}, not {found}"
        case "enum":
            words = [str(word) for word in limit]
            listed = ", ".join(words[:-1]) + (" or " if words[:-1] else "") + words[-1]
            hint = did_you_mean(value, words) if isinstance(value, str) else ""
            return f"{name} must be {listed}, not {found}{hint}"
        case "required":
            missing = next(key for key in limit if key not in value and f"'{key}'" in error.message)
            return f"{name} lacks `{missing}`"
        case "minimum":
            return f"{name} must be at least {limit}, not {value}"
        case "exclusiveMinimum":
            return f"{name} must be more than {limit}, not {value}"
        case "maximum":
            return f"{name} must be at most {limit}, not {value}"
        case "minLength" | "minItems":
            return f"{name} must not be empty"
        case "maxLength":
            return f"{name} must have at most {limit} characters, not {len(value)}"
        case "uniqueItems":
            return f"{name} holds a value twice"
        case "minProperties" | "maxProperties":
            known = list(error.schema.get("properties", ()))
            return (
                f"{name} must have exactly one of {', '.join(known)}"
                if known
                else f"{name} must not be empty"
            )
    return f"{name}: {error.message}"


def _expected(error: ValidationError) -> str:
    schema = error.schema if isinstance(error.schema, dict) else {}
    if "title" in schema:
        return str(schema["title"])
    types = error.validator_value
    return " or ".join(_TYPES[t] for t in ([types] if isinstance(types, str) else types))
