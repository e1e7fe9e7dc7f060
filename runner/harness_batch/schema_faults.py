"""JSON Schema errors as faults with places: the one voice of every door that reads a file.

Unknown keys name the nearest known key; of alternatives the one that the value is closest to
speaks. Remote `$ref`s are never fetched.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry

from harness_batch.errors import Fault
from harness_batch.messages import JsonObject

Place = Callable[[tuple[str | int, ...]], tuple[int, int]]
"""Path of a value -> its line and column (1-based; 0, 0 when unknown)."""

_TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def schema_faults(
    document: object, schema: JsonObject, *, file: Path, place: Place
) -> tuple[Fault, ...]:
    """All that is wrong with the document, in the order of the file."""
    validator = Draft202012Validator(schema, registry=Registry())
    found: dict[Fault, None] = {}
    for error in validator.iter_errors(document):
        for path, message in _told(error):
            line, column = place(path)
            found[Fault(file, line, column, message)] = None
    return tuple(sorted(found, key=lambda fault: (fault.line, fault.column, fault.message)))


def nearest(word: str, known: Collection[str]) -> str:
    """`; did you mean 'x'?` or nothing: the end of a message about an unknown word."""
    lowered = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean {lowered[close[0]]!r}?" if close else ""


def dotted(path: Sequence[str | int]) -> str:
    """`provider.mine.models`, the way people write a place in a document."""
    return ".".join(str(step) for step in path)


def _told(error: ValidationError) -> Iterator[tuple[tuple[str | int, ...], str]]:
    path = tuple(error.absolute_path)
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(error, path)
        case "anyOf" | "oneOf" if error.context:
            yield from _closest_alternative(error, path)
        case _:
            yield path, _message(error, path)


def _unknown_keys(
    error: ValidationError, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    schema: Any = error.schema
    instance: Any = error.instance
    known = schema.get("properties", {})
    free = schema.get("patternProperties", {})
    for key in instance:
        if key in known or any(re.search(pattern, key) for pattern in free):
            continue
        inside = f" in {dotted(path)}" if path else ""
        listed = f" (known: {', '.join(known)})" if len(known) <= 12 else ""
        yield (*path, key), f"unknown key {key!r}{inside}{nearest(key, known) or listed}"


def _closest_alternative(
    error: ValidationError, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    branches: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(int(inner.relative_schema_path[0]), []).append(inner)
    fitting = [
        errors
        for errors in branches.values()
        if not any(e.validator == "type" and not e.relative_path for e in errors)
    ]
    if len(fitting) != 1:
        branches_wanted: Any = error.validator_value
        wanted = " or ".join(_wanted(branch) for branch in branches_wanted)
        yield path, f"{dotted(path) or 'the document'} must be {wanted}"
        return
    for inner in fitting[0]:
        yield from _told(inner)


_BOUNDS = {
    "minimum": "must be at least",
    "exclusiveMinimum": "must be more than",
    "maximum": "must be at most",
}


def _message(error: ValidationError, path: tuple[str | int, ...]) -> str:
    name = dotted(path) or "the document"
    kind = str(error.validator)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    schema: Any = error.schema
    match kind:
        case "type" | "enum" | "const":
            text = f"{name} must be {_wanted({kind: wanted})}, not {_shown(instance)}"
            words = [str(word) for word in wanted] if kind == "enum" else []
            return text + nearest(str(instance), words)
        case "required":
            missing = [key for key in wanted if key not in instance]
            text = f"{name} needs {', '.join(repr(key) for key in missing)}"
        case "minLength" | "minItems" | "minProperties":
            text = f"{name} must not be empty"
        case "pattern":
            told = schema.get("description", f"of the form {wanted}")
            text = f"{name} must be {told}, not {_shown(instance)}"
        case _ if kind in _BOUNDS:
            text = f"{name} {_BOUNDS[kind]} {wanted}, not {_shown(instance)}"
        case _:
            text = f"{name}: {error.message[:200]}"
    return text


def _wanted(schema: JsonObject) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(word) for word in schema["enum"])
    if "const" in schema:
        return repr(schema["const"])
    types = schema.get("type", "something else")
    return " or ".join(
        _TYPE_NAMES.get(t, t) for t in ([types] if isinstance(types, str) else types)
    )


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
