"""Known secret values never reach a file: every spelling of one is replaced before it is written.

Spellings: see spellings.py. Values under 6 characters are left alone: they would be found
everywhere. A part of a secret, or one packed or ciphered, is not found.
"""

from collections.abc import Callable
from types import UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from attrs import fields, has

from harness_batch.events import Payload
from harness_batch.messages import JsonObject
from harness_batch.store.spellings import SHORTEST_SECRET, Spellings, forms_of

GATHERED: Final = 128 * 1024
"""Bytes of a stream that are looked at together."""


class Mask:
    """A function text -> text that replaces the given secrets, and those that it learns."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._secrets: frozenset[str] = frozenset()
        self._know(frozenset(secrets))

    def learn(self, secret: str) -> None:
        """One more secret, to be told before it can stand anywhere (tokens got at run time)."""
        if secret not in self._secrets:
            self._know(self._secrets | {secret})

    def _know(self, secrets: frozenset[str]) -> None:
        self._secrets = secrets
        found = {
            form
            for secret in secrets
            if len(secret) >= SHORTEST_SECRET
            for form in forms_of(secret)
        }
        forms = tuple(sorted(found, key=lambda form: (-len(form), form)))
        binary = (form.encode(errors="surrogatepass").decode("latin-1") for form in forms)
        # Threads may be masking outputs: each of these is whole at every moment.
        self._spellings = Spellings(forms)
        self._in_bytes = Spellings(tuple(binary))

    def __call__(self, text: str) -> str:
        """The text with each spelling of a secret replaced; the text itself when there is none."""
        return self._spellings.masked(text)

    def in_bytes(self, data: bytes) -> bytes:
        """As for text, for tool output and other files that need not be UTF-8."""
        # One character a byte, so that all of them come through.
        return self._in_bytes.masked(data.decode("latin-1")).encode("latin-1")

    def finds(self, data: bytes) -> bool:
        """Whether some spelling of a secret stands in the data."""
        return self._in_bytes.stand_in(data.decode("latin-1"))

    def in_stream(self) -> "MaskedStream":
        """As `in_bytes`, for data that comes piece by piece."""
        return MaskedStream(lambda: self._in_bytes)

    def split(self, text: str) -> tuple[str, str]:
        """Streamed text: what may be let out, masked; and its end that may grow into a secret.

        The end is to be put before the text that comes next.
        """
        at = self._spellings.open_end(text)
        return self(text[:at]), text[at:]


class MaskedStream:
    """Bytes on their way to a file; what may be the beginning of a secret waits for the rest.

    Looking costs by the call more than by the byte, so some bytes are gathered first.
    """

    def __init__(self, spellings: Callable[[], Spellings]) -> None:
        self._spellings = spellings
        """As they are known at the moment."""
        self._held = ""
        self._waiting: list[bytes] = []
        self._size = 0

    def let(self, data: bytes) -> bytes:
        """More data; what of it may be written now."""
        self._waiting.append(data)
        self._size += len(data)
        if self._size < GATHERED:
            return b""
        text = self._gathered()
        spellings = self._spellings()
        at = spellings.open_end(text)
        self._held = text[at:]
        return spellings.masked(text[:at]).encode("latin-1")

    def rest(self) -> bytes:
        """What waited, when nothing more comes."""
        text, self._held = self._gathered(), ""
        return self._spellings().masked(text).encode("latin-1")

    def cut(self) -> bytes:
        """What waited, when no more is taken: without what may be most of a secret."""
        text, self._held = self._gathered(), ""
        spellings = self._spellings()
        return spellings.masked(text[: spellings.open_end(text)]).encode("latin-1")

    def _gathered(self) -> str:
        data = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        return self._held + data.decode("latin-1")


# ---- every free text of a payload

Plain: TypeAlias = Any
"""A record, a text or a JSON value, depending on the field."""
Changer: TypeAlias = Callable[[Plain, Callable[[str], str]], Plain]


def mapped(payload: Payload, change: Callable[[str], str]) -> Payload:
    """The payload with every free text changed: not ids, times, statuses and keys of records.

    Texts inside JSON values are changed too, keys of theirs included.
    """
    result: Payload = _changed_record(payload, change)
    return result


def _keep(value: Plain, _change: Callable[[str], str]) -> Plain:
    return value


def _changed_text(value: Plain, change: Callable[[str], str]) -> Plain:
    return None if value is None else change(value)


def _changed_json(value: Plain, change: Callable[[str], str]) -> Plain:
    match value:
        case str():
            return change(value)
        case dict():
            return {change(str(key)): _changed_json(item, change) for key, item in value.items()}
        case list() | tuple():
            return [_changed_json(item, change) for item in value]
        case _:
            return value


def _changed_record(record: Plain, change: Callable[[str], str]) -> Plain:
    if record is None:
        return None
    cls = type(record)
    return cls(**{name: part(getattr(record, name), change) for name, part in _changers(cls)})


def _is_name(field: str) -> bool:
    return field == "id" or field.endswith(("_id", "_at"))


def _changer_of(hint: Plain) -> Changer:
    origin: object = get_origin(hint)
    members = get_args(hint) if origin is Union or origin is UnionType else (hint,)
    if any(has(member) for member in members):
        return _changed_record
    if hint is Any or JsonObject in members or list[str] in members:
        return _changed_json
    return _changed_text if str in members else _keep


def _changers(cls: type[Plain]) -> tuple[tuple[str, Changer], ...]:
    """Field -> what changes it; a Literal is no free text."""
    hints = get_type_hints(cls)
    return tuple(
        (field.name, _keep if _is_name(field.name) else _changer_of(hints[field.name]))
        for field in fields(cls)
    )
