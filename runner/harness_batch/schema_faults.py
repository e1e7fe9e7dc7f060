"""JSON Schema errors in words, each with its path: the one voice of every door that reads a file.

Where a part of a schema has a `title`, that is what messages say is expected. Unknown keys name the
nearest known key; of alternatives the one that the value was meant for speaks. Remote `$ref`s are
never fetched.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

from attrs import frozen
from jsonschema import Draft202012Validator, ValidationError
from referencing import Registry

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject
from harness_batch.words import dotted, kind, nearest

Steps: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""

Place = Callable[[Steps], tuple[int, int]]
"""Path of a value -> its line and column (1-based; 0, 0 when unknown)."""

Json: TypeAlias = Any
"""A part of a schema, or a value whose form it is about to check."""

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}


@frozen
class Complaint:
    """One thing that is wrong with the value at `path`, or with the key that ends the path."""

    path: Steps
    message: str
    of_key: bool = False


def validator(schema: JsonObject) -> Draft202012Validator:
    """For one schema and many documents. Its references lead nowhere but into the schema."""
    return Draft202012Validator(schema, registry=Registry())


def complaints(
    document: object, schema: Draft202012Validator, whole: str = "the document"
) -> Iterator[Complaint]:
    """All that is wrong with the document. `whole`: what messages call it."""
    for error in _leaves(schema.iter_errors(document)):
        yield from _worded(error, whole)


def schema_faults(
    document: object, schema: JsonObject, *, file: Path, place: Place
) -> tuple[Fault, ...]:
    """All that is wrong with the document, in the order of the file."""
    found = (
        Fault(file, *place(c.path), c.message) for c in complaints(document, validator(schema))
    )
    order = sorted(found, key=lambda fault: (fault.line, fault.column, fault.message))
    return tuple(dict.fromkeys(order))


def _leaves(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """The errors that say something: of alternatives the one that the value was meant for."""
    for error in errors:
        branches = _fitting(error) if error.validator == "anyOf" else []
        if len(branches) == 1 and not _is_word_of(error, branches[0]):
            yield from _leaves(branches[0])
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


def _worded(error: ValidationError, whole: str) -> Iterator[Complaint]:
    path: Steps = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        for key in _strange_keys(error):
            yield Complaint((*path, key), _unknown(path, key, _known(error)), of_key=True)
    elif error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
        here = (*path, str(error.instance))
        yield Complaint(here, f"`{dotted(here)}` must be {_expected(error.schema)}", of_key=True)
    else:
        name = f"`{dotted(path)}`" if path else whole
        word = _WORDS.get(str(error.validator))
        said = f"is refused: {error.message[:200]}" if word is None else word(error)
        yield Complaint(path, f"{name} {said}")


def _strange_keys(error: ValidationError) -> Iterator[str]:
    schema: Json = error.schema
    free = schema.get("patternProperties", ())
    for key in cast("JsonObject", error.instance):
        if key not in _known(error) and not any(re.search(pattern, key) for pattern in free):
            yield key


def _known(error: ValidationError) -> list[str]:
    schema: Json = error.schema
    return list(schema.get("properties", ()))


def _unknown(path: Steps, key: str, known: list[str]) -> str:
    if key == "<<":
        return "merge keys (`<<`) are not part of YAML 1.2; write the entries out"
    where = f" in `{dotted(path)}`" if path else ""
    hint = nearest(key, known)
    listed = f"; known are {', '.join(known)}" if not hint and len(known) < 12 else ""
    return f"unknown key `{key}`{where}{hint}{listed}"


def _expected(schema: Json) -> str:
    match schema:
        case {"title": title}:
            words = str(title)
        case {"enum": known}:
            words = _listed([str(word) for word in known])
        case {"anyOf": forms}:
            words = " or ".join(map(_expected, forms))
        case {"pattern": pattern}:
            words = f"of the form {pattern}"
        case {"type": list() as types}:
            words = " or ".join(_TYPES[name] for name in types)
        case {"type": name}:
            words = _TYPES[name]
        case _:
            words = "something else"
    return words


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + (" or " if words[:-1] else "") + words[-1]


def _of_type(error: ValidationError) -> str:
    enums: list[Json] = [e.validator_value for e in error.context or () if e.validator == "enum"]
    words = [word for enum in enums for word in enum]
    return f"must be {_expected(error.schema)}, not {kind(error.instance)}{_meant(error, words)}"


def _one_of(error: ValidationError) -> str:
    limit: Json = error.validator_value
    words = [str(word) for word in limit]
    return f"must be {_listed(words)}, not {kind(error.instance)}{_meant(error, words)}"


def _meant(error: ValidationError, words: list[str]) -> str:
    return nearest(error.instance, words) if isinstance(error.instance, str) else ""


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
