"""Known secret values never reach a file: every spelling of one is replaced before it is written.

A spelling is the value itself, escaped for JSON (once, and twice: arguments inside arguments), HTML
or a URL, base64 or base32 at any alignment, hex with or without marks, or reversed, on one line or
broken over several (as `base64` and `xxd -p` print it). Values under 6 characters are left alone:
they would be found everywhere. A part of a secret, or one packed or ciphered, is not found.
"""

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property
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


_BREAK: Final = re.compile(r"(?:[\r\n]|\\[rn])++")
"""What stands between the lines of a broken spelling, as it is or escaped."""


def _joined(text: str) -> str:
    """Without line breaks; much faster than the pattern."""
    for line_end in ("\r", "\n", "\\r", "\\n"):
        text = text.replace(line_end, "")
    return text


Span: TypeAlias = tuple[int, int]
GATHERED: Final = 128 * 1024
"""Bytes of a stream that are looked at together."""
_HEAD: Final = 4
"""Characters by which most places of a text are told to begin no secret."""


class Spellings:
    """Finds texts in a text, also where line breaks stand inside of them. Immutable."""

    def __init__(self, forms: tuple[str, ...]) -> None:
        self._forms = forms
        self._sorted = sorted(forms)
        self._heads = frozenset(form[:_HEAD] for form in forms)
        longest = max((len(form) - 1 for form in forms), default=0)
        self._reach = longest + longest // 8  # room for line breaks

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Made when one is found: most runs never see their secrets."""
        return re.compile("|".join(map(re.escape, self._forms)))

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
        whole = self._pattern.finditer(text) if self._holds(text) else ()
        return [match.span() for match in whole] + self._broken(text)

    def open_end(self, text: str) -> int:
        """Where the end begins that may grow into one of them; the text's length when none does."""
        found = self.spans(text)
        for start in range(max(0, len(text) - self._reach), len(text)):
            head = _joined(text[start : start + 2 * _HEAD])[:_HEAD]
            if len(head) == _HEAD and head not in self._heads:
                continue
            end = _joined(text[start:])
            if end and self._begins(end) and not any(a < start < b for a, b in found):
                return start
        return len(text)

    def _begins(self, end: str) -> bool:
        """Whether it is the beginning of a longer form."""
        at = bisect_right(self._sorted, end)
        return at < len(self._sorted) and self._sorted[at].startswith(end)

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
    yield html.escape(secret)
    for digits in (data.hex(), data.hex().upper()):
        pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
        for mark in ("", "%", "\\x", "\\\\x"):
            yield "".join(mark + pair for pair in pairs)
        yield from (between.join(pairs) for between in (" ", ":"))
    yield from _base64_forms(data)
    yield from _base32_forms(data)


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


def _base32_forms(data: bytes) -> Iterator[str]:
    """As of base64; in either case."""
    for before in range(5):
        text = base64.b32encode(b"\0" * before + data).decode().rstrip("=")
        core = text[(before * 8 + 4) // 5 : (before + len(data)) * 8 // 5]
        if len(core) >= SHORTEST_SECRET:
            yield core
            yield core.lower()


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
