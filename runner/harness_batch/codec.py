r"""An event and its one line of JSON: lossless both ways, ready for readers of other versions.

`{"type": "part_updated", "run_id": ..., "session_id": ..., "seq": 7, "ts": ..., "part": {...}}`:
`type` is the snake_case name of the payload's class, the payload's fields follow the envelope. Part
bodies and tool states carry a `type` of their own, money is decimal text, a trailing underscore of
a field is dropped (`try_` is `try`). A reader ignores keys it does not know and refuses types it
does not know. Lines are UTF-8; a lone surrogate stands as its `\ud800` escape, two that make a
pair come back as the one character they mean, and NaN and infinities become null.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType, UnionType
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_type_hints

from attrs import AttrsInstance, fields, has
from cattrs import BaseConverter, Converter
from cattrs.errors import CattrsError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from harness_batch import events, messages
from harness_batch.errors import StorageError
from harness_batch.events import Event, Payload
from harness_batch.messages import JsonObject

T = TypeVar("T")

Json: TypeAlias = Any
"""Any JSON value, or what becomes one."""

_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


def tag(cls: type) -> str:
    """The `type` of a payload, part body or tool state: `ModelCallOpened` is model_call_opened."""
    return _CAMEL.sub("_", cls.__name__).lower()


PAYLOADS: Final[Mapping[str, type[Payload]]] = MappingProxyType(
    {tag(cls): cls for cls in get_args(events.Payload)}
)
"""`type` -> class of the payload."""
_TAGGED_UNIONS = (messages.PartBody, messages.ToolState)
_TAG_OF = {cls: name for name, cls in PAYLOADS.items()}
_TAGS = {cls: tag(cls) for union in _TAGGED_UNIONS for cls in get_args(union)}


_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, CattrsError)


def encode(event: Event) -> bytes:
    """One JSON object without a line break, UTF-8."""
    line = {
        "type": _TAG_OF[type(event.payload)],
        "run_id": event.run_id,
        "session_id": event.session_id,
        "seq": event.seq,
        "ts": event.ts,
    }
    line.update(_CONVERTER.unstructure(event.payload))
    return as_json(line)


def decode(line: bytes) -> Event:
    """The event of one line.

    Raises: StorageError that says what is wrong with the line, or that a newer version wrote it.
    """
    try:
        data = json.loads(line)
        name = data["type"]
        payload = PAYLOADS.get(name)
        if payload is None:
            raise StorageError(
                f"the event type {name!r} is not known to this version of harness-batch; "
                "a newer version wrote it, use that one to read it"
            )
        return Event(
            _strict_text(data["run_id"], str),
            None if data["session_id"] is None else _strict_text(data["session_id"], str),
            _strict_int(data["seq"], int),
            _strict_text(data["ts"], str),
            _structured(data, payload),
        )
    except _UNREADABLE as error:
        raise StorageError(
            f"not an event: {_what(error)}; the line begins {line[:80]!r}"
        ) from error


def plain(record: AttrsInstance) -> JsonObject:
    """Any record of the vocabulary as the journal's plain values; tagged where the journal tags."""
    result: JsonObject = _CONVERTER.unstructure(record)
    return result


def body_of(data: JsonObject) -> messages.PartBody:
    """A part's body out of the plain values that `plain` makes of it. Raises: StorageError."""
    try:
        body: messages.PartBody = _CONVERTER.structure(data, messages.PartBody)  # type: ignore[arg-type]  # a union is no class
    except _UNREADABLE as error:
        raise StorageError(f"not a part: {_what(error)}") from error
    return body


def as_json(value: Json) -> bytes:
    """Compact UTF-8 JSON of plain values; what JSON cannot say is replaced as the module says."""
    try:
        text = _dumps(value)
    except ValueError:
        text = _dumps(_finite(value))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(_finite(value), separators=(",", ":"), default=str).encode()


def _dumps(value: Json) -> str:
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False, default=str
)


def _finite(value: Json) -> Json:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value


def _what(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


# ---- records to plain values and back


def _same(value: Json, _type: object = None) -> Json:
    return value


def _strict_text(value: Json, _type: object) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is not a text")
    return value


def _strict_int(value: Json, _type: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _strict_bool(value: Json, _type: object) -> bool:
    if type(value) is not bool:
        raise TypeError(f"{value!r} is not true or false")
    return value


def _number(value: Json, _type: object) -> float:
    if value is None:  # was NaN or infinite
        return 0.0
    if type(value) not in (int, float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _decimal(value: Json, _type: object) -> Decimal:
    try:
        return Decimal(_strict_text(value, str))
    except InvalidOperation as error:
        raise ValueError(f"{value!r} is not a decimal number") from error


def _object(value: Json, _type: object) -> JsonObject:
    if type(value) is not dict:
        raise TypeError(f"{value!r} is not an object")
    return value


def _texts(value: Json, _type: object) -> list[str]:
    if type(value) is not list:
        raise TypeError(f"{value!r} is not a list")
    return [_strict_text(item, str) for item in value]


_STRUCTURE_AS_IS: Mapping[Any, Callable[[Any, Any], Any]] = MappingProxyType(
    {JsonObject: _object, list[str]: _texts, Any: _same}
)
"""Types that the JSON values already are, with what makes sure of it."""


def _overrides(cls: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    overrides = {}
    for field in fields(cls):
        reader = _STRUCTURE_AS_IS.get(hints[field.name])
        overrides[field.name] = override(
            rename=field.name.rstrip("_"),
            unstruct_hook=_same if reader else None,
            struct_hook=reader,
        )
    return overrides


def _writer(cls: type[Any], converter: BaseConverter) -> Callable[[Any], JsonObject]:
    write = make_dict_unstructure_fn(cls, converter, **_overrides(cls))
    if cls not in _TAGS:
        return write
    name = _TAGS[cls]
    return lambda record: {"type": name, **write(record)}


def _reader(cls: type[Any], converter: BaseConverter) -> Callable[[Any, Any], Any]:
    return make_dict_structure_fn(cls, converter, **_overrides(cls))


def _register_union(converter: Converter, union: UnionType) -> None:
    classes = {tag(cls): cls for cls in get_args(union)}

    def read(value: Json, _type: object) -> Json:
        name = value["type"]
        if name not in classes:
            raise ValueError(f"{name!r} is none of {', '.join(classes)}")
        return converter.structure(value, classes[name])

    converter.register_structure_hook(union, read)


def _build() -> Converter:
    """A converter that compiles a class's hooks when it first meets it: imports stay quick."""
    converter = Converter(detailed_validation=False, prefer_attrib_converters=True)
    converter.register_unstructure_hook(Decimal, str)
    for cls, read in (
        (str, _strict_text),
        (int, _strict_int),
        (bool, _strict_bool),
        (float, _number),
        (Decimal, _decimal),
    ):
        converter.register_structure_hook(cls, read)
    converter.register_unstructure_hook_factory(has, _writer)
    converter.register_structure_hook_factory(has, _reader)
    for union in _TAGGED_UNIONS:
        _register_union(converter, union)
    return converter


_CONVERTER = _build()


def _structured(data: JsonObject, cls: type[T]) -> T:
    return _CONVERTER.structure(data, cls)
