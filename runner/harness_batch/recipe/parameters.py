"""Parameters: how they are declared, and what the values that users give for them come to.

0, false and the empty text are values. A `file` parameter's value is the file's content, read
from a path relative to the folder of the invocation; an optional one that is not given is empty,
since files have no defaults.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path

from attrs import frozen

from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject
from harness_batch.recipe.file_text import UNFIT, read_small_text
from harness_batch.recipe.record import Parameter
from harness_batch.recipe.source_map import Json, SourceMap
from harness_batch.words import kind, nearest

RESERVED = frozenset(
    [
        "recipe_dir",
        "loop",
        "self",
        "super",
        "caller",
        "varargs",
        "kwargs",
        "true",
        "false",
        "none",
        "True",
        "False",
        "None",
        "and",
        "or",
        "not",
        "in",
        "is",
        "if",
        "else",
        "range",
        "dict",
        "namespace",
    ]
)
"""Words that mean something else in templates."""

_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@frozen
class Wrong:
    """Why a value is refused: what it must be, or what went wrong."""

    message: str


def declared_parameters(document: JsonObject) -> tuple[Parameter, ...]:
    """The declarations of a valid document, defaults typed."""
    return tuple(_declared(entry) for entry in document.get("parameters", ()))


def _declared(entry: JsonObject) -> Parameter:
    options = tuple(as_text(option) for option in entry.get("options", ()))
    parameter = Parameter(
        key=entry["key"],
        input_type=entry.get("input_type", "string"),
        requirement=entry.get("requirement", "optional" if "default" in entry else "required"),
        description=entry.get("description", ""),
        options=options,
    )
    if "default" not in entry:
        return parameter
    default = parsed(parameter, entry["default"])
    return Parameter(
        key=parameter.key,
        input_type=parameter.input_type,
        requirement=parameter.requirement,
        description=parameter.description,
        options=options,
        default=None if isinstance(default, Wrong) else default,
    )


def declaration_faults(document: JsonObject, source: SourceMap) -> Iterator[Fault]:
    """What is wrong with the declarations beyond their form."""
    seen: set[str] = set()
    for at, entry in enumerate(document.get("parameters", ())):
        trail, key = ("parameters", at), entry["key"]
        if key in seen:
            yield source.fault((*trail, "key"), f"the parameter `{key}` is declared twice")
        if key in RESERVED:
            yield source.fault((*trail, "key"), f"`{key}` has a meaning of its own in templates")
        seen.add(key)
        if (entry.get("input_type") == "select") != ("options" in entry):
            here = (*trail, "options") if "options" in entry else trail
            yield source.key_fault(here, f"the parameter `{key}`: `options` go with `select` only")
        yield from _default_faults(entry, at, source)


def _default_faults(entry: JsonObject, at: int, source: SourceMap) -> Iterator[Fault]:
    trail, key = ("parameters", at, "default"), entry["key"]
    if "default" not in entry:
        if entry.get("requirement") == "optional" and entry.get("input_type") != "file":
            message = f"the optional parameter `{key}` needs a `default`"
            yield source.fault(trail[:2], message)
        return
    if entry.get("input_type") == "file":
        message = f"the parameter `{key}`: a file is read only when the user names it; no `default`"
        yield source.key_fault(trail, message)
        return
    if entry.get("requirement") == "required":
        message = f"the `default` of the required parameter `{key}` is never used"
        yield source.key_fault(trail, message, "warning")
    bare = {name: value for name, value in entry.items() if name != "default"}
    value = parsed(_declared(bare), entry["default"])
    if isinstance(value, Wrong):
        yield source.fault(trail, f"the `default` of `{key}` {value.message}")


def resolved(
    parameters: tuple[Parameter, ...], given: Mapping[str, object], source: SourceMap
) -> JsonObject:
    """The value of every parameter; what is given beside them is not looked at.

    Raises: FaultyInput with all that are missing or wrong.
    """
    values: JsonObject = {}
    faults: list[Fault] = []
    for at, parameter in enumerate(parameters):
        if parameter.key in given:
            value = parsed(parameter, given[parameter.key])
        elif parameter.default is not None and parameter.requirement != "required":
            value = parameter.default
        elif parameter.input_type == "file" and parameter.requirement == "optional":
            value = ""
        else:
            value = Wrong(f"is required; give it with `-p {parameter.key}=...`")
        if isinstance(value, Wrong):
            near = "" if parameter.key in given else _near_miss(parameter.key, given, parameters)
            message = f"the parameter `{parameter.key}` {value.message}{near}"
            faults.append(source.fault(("parameters", at), message))
        values[parameter.key] = value
    if faults:
        raise FaultyInput(faults)
    return values


def _near_miss(key: str, given: Mapping[str, object], known: tuple[Parameter, ...]) -> str:
    strangers = sorted(set(given) - {parameter.key for parameter in known})
    return nearest(key, strangers).replace("did you mean", "was it meant by")


def as_text(value: object) -> str:
    """A plain value as a recipe would write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def parsed(parameter: Parameter, value: object) -> Json:
    """The typed value, or what is Wrong with it. Texts are parsed by the input type."""
    if not isinstance(value, str | int | float | bool):
        return Wrong(f"must be a text, a number or true or false, not {kind(value)}")
    if isinstance(value, str) and UNFIT.search(value):
        return Wrong("holds a character that is no text (NUL, or bytes that are not UTF-8)")
    if parameter.input_type == "select":
        return _choice(as_text(value), parameter.options)
    return _PARSERS[parameter.input_type](value)


def _number(value: object) -> int | float | Wrong:
    wrong = Wrong(f"must be a number, not {kind(value)}")
    text = as_text(value).strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if math.isfinite(number) else wrong


def _boolean(value: object) -> bool | Wrong:
    words = {"true": True, "false": False}
    return words.get(
        as_text(value).strip().lower(), Wrong(f"must be true or false, not {kind(value)}")
    )


def _date(value: object) -> str | Wrong:
    wrong = Wrong(f"must be a date such as 2030-12-31, not {kind(value)}")
    text = str(value).strip()
    if not _DATE.fullmatch(text):
        return wrong
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return wrong


def _content(value: object) -> str | Wrong:
    if not isinstance(value, str) or not value:
        return Wrong(f"must be the path of a file, not {kind(value)}")
    try:
        return read_small_text(Path(value))
    except FaultyInput as error:
        return Wrong(f"names a file that cannot be used: {error.faults[0]}")


def _choice(text: str, options: tuple[str, ...]) -> str | Wrong:
    if text in options:
        return text
    hint = nearest(text, options)
    return Wrong(f"must be one of {', '.join(options)}, not {kind(text)}{hint}")


_PARSERS: dict[str, Callable[[object], Json]] = {
    "string": as_text,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
    "file": _content,
}
"""Input type -> the value of what was given, or Wrong."""
