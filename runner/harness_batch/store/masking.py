"""Known secret values never reach a file: every spelling of one is replaced before it is written.

A spelling is the value itself, JSON-escaped (once, and twice: arguments inside arguments),
URL-quoted, base64 at any alignment, hex, or reversed, on one line or broken over several (as
`base64` and `xxd -p` print it). Values under 6 characters are left alone: they would be found
everywhere.
"""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from types import UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, quote_plus

from attrs import fields, has

from harness_batch.events import Payload
from harness_batch.messages import JsonObject

MASKED: Final = "[masked]"
"""What stands where a secret stood."""
SHORTEST_SECRET: Final = 6
"""Characters; a shorter value would be found everywhere."""


_BREAK: Final = re.compile(r"[\r\n]|\\[rn]")
"""What stands between the lines of a broken spelling, as it is or escaped."""


def _joined(text: str) -> str:
    """Without line breaks; much faster than the pattern."""
    for line_end in ("\r", "\n", "\\r", "\\n"):
        text = text.replace(line_end, "")
    return text


Span: TypeAlias = tuple[int, int]


class Spellings:
    """Finds texts in a text, also where line breaks stand inside of them. Immutable."""

    def __init__(self, forms: tuple[str, ...]) -> None:
        self._forms = forms
        self._pattern = re.compile("|".join(map(re.escape, forms)))

    def masked(self, text: str) -> str:
        """The text with each of them replaced; the text itself when there is none."""
        pieces: list[str] = []
        done = 0
        for start, end in self._broken(text):
            pieces += text[done:start], MASKED
            done = end
        if pieces:
            text = "".join([*pieces, text[done:]])
        return self._pattern.sub(MASKED, text) if self._holds(text) else text

    def spans(self, text: str) -> list[Span]:
        """Where they stand."""
        whole = [match.span() for match in self._pattern.finditer(text)] if self._forms else []
        return whole + self._broken(text)

    def stand_in(self, text: str) -> bool:
        """Whether one does."""
        return self._holds(text) or bool(self._broken(text))

    def _holds(self, text: str) -> bool:
        return any(form in text for form in self._forms)

    def _broken(self, text: str) -> list[Span]:
        """Where one begins before a line break and ends behind it, in order."""
        quick = _joined(text)
        if len(quick) == len(text) or not self._holds(quick):
            return []
        breaks = [match.span() for match in _BREAK.finditer(text)]
        joined = _BREAK.sub("", text)
        removed = list(accumulate((end - start for start, end in breaks), initial=0))
        places = [start - gone for (start, _), gone in zip(breaks, removed, strict=False)]
        found = []
        for match in self._pattern.finditer(joined):
            first, last = (bisect_right(places, at) for at in (match.start(), match.end() - 1))
            if first != last:
                found.append((match.start() + removed[first], match.end() + removed[last]))
        return found


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
            form for secret in secrets if len(secret) >= SHORTEST_SECRET for form in _forms(secret)
        }
        forms = tuple(sorted(found, key=lambda form: (-len(form), form)))
        binary = (form.encode(errors="surrogatepass").decode("latin-1") for form in forms)
        # Threads may be masking outputs: each of these is whole at every moment.
        self._spellings = Spellings(forms)
        self._in_bytes = Spellings(tuple(binary))
        self._beginnings = frozenset(form[:size] for form in forms for size in range(1, len(form)))
        longest = max((len(form) - 1 for form in forms), default=0)
        self._reach = longest + longest // 8  # room for line breaks

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

    def split(self, text: str) -> tuple[str, str]:
        """Streamed text: what may be let out, masked; and its end that may grow into a secret.

        The end is to be put before the text that comes next.
        """
        found = self._spellings.spans(text)
        for start in range(max(0, len(text) - self._reach), len(text)):
            end = _joined(text[start:])
            if end in self._beginnings and not any(a < start < b for a, b in found):
                return self(text[:start]), text[start:]
        return self(text), ""


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield secret[::-1]
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    data = secret.encode(errors="surrogatepass")
    yield quote(data, safe="")
    yield quote(data)
    yield quote_plus(data)
    yield data.hex()
    yield data.hex().upper()
    yield from _base64_forms(data)


def _base64_forms(data: bytes) -> Iterator[str]:
    """The characters that any base64 of a text around the secret must hold, both alphabets."""
    for before in range(3):
        # Only whole 6-bit groups of the secret's own bits are the same whatever stands around it.
        text = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        first = (before * 8 + 5) // 6
        last = (before + len(data)) * 8 // 6
        core = text[first:last]
        if len(core) >= SHORTEST_SECRET:
            yield core
            yield core.translate({ord("+"): "-", ord("/"): "_"})


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
