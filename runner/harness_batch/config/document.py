"""One JSONC file as a checked tree with the line of every value.

The decoder gives no positions, so a second, small scan of a text that is known to be valid finds
them, and the keys that are there twice. Files of a repository may be hostile: they are read only
when they are ordinary and lie inside it.
"""

import math
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import pyjson5
from attrs import frozen

from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject

MAX_BYTES = 1_000_000
MAX_DEPTH = 64

Steps = tuple[str | int, ...]

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<mark>[{}\[\]:,])
      | (?P<word>[^\s{}\[\]:,"'/]+)""",
    re.DOTALL | re.VERBOSE,
)
_CODE_POINT = re.compile(r"U\+([0-9a-f]{4,6})")


@frozen
class Document:
    """A file's tree. `trusted` is False for the repository's own files."""

    file: Path
    trusted: bool
    body: JsonObject
    places: dict[Steps, tuple[int, int]]

    def place(self, path: Steps) -> tuple[int, int]:
        """Line and column (1-based) of a value, else of its nearest known ancestor."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (0, 0))

    def fault(self, path: Steps, message: str) -> Fault:
        """What is wrong with the value at `path`."""
        return Fault(self.file, *self.place(path), message)

    def warning(self, path: Steps, message: str) -> Fault:
        """What the user should know about the value at `path`."""
        return Fault(self.file, *self.place(path), message, "warning")


def read_document(file: Path, *, trusted: bool) -> Document:
    """The file's tree. Raises: FaultyInput with its syntax faults."""
    text = _text(file, _bytes(file, trusted=trusted))
    try:
        body = pyjson5.decode(text, MAX_DEPTH)
    except pyjson5.Json5Exception as error:
        raise FaultyInput([_syntax_fault(file, text, str(error.args[0]))]) from None
    if not isinstance(body, dict):
        raise FaultyInput([Fault(file, 1, 1, "the file must hold one object: { ... }")])
    places: dict[Steps, tuple[int, int]] = {}
    faults = list(_scan(file, text, places))
    document = Document(file, trusted, body, places)
    faults += [document.fault(path, told) for path, told in _odd_values(body, ())]
    if faults:
        raise FaultyInput(faults)
    return document


def _bytes(file: Path, *, trusted: bool) -> bytes:
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if trusted else os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        with open(os.open(file, flags), "rb") as stream:  # noqa: PTH123 - Path has no flags
            if not trusted and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise FaultyInput([Fault(file, 0, 0, "is not an ordinary file")])
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        told = f"cannot be read: {error.strerror or error}"
        raise FaultyInput([Fault(file, 0, 0, told)]) from None
    if len(content) > MAX_BYTES:
        raise FaultyInput([Fault(file, 0, 0, f"is larger than {MAX_BYTES:,} bytes")])
    return content


def _text(file: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FaultyInput([Fault(file, line, 1, "is not UTF-8 text")]) from None


def _syntax_fault(file: Path, text: str, message: str) -> Fault:
    found = re.search(r" (?:starting )?near (\d+)", message)
    told = _CODE_POINT.sub(
        lambda m: repr(chr(int(m[1], 16))), message.replace("b'comma'", "','").replace("b'", "'")
    )
    told = re.sub(r" (?:starting )?near \d+", "", told)
    if not found:
        return Fault(file, 0, 0, f"is not JSON with comments: {told}")
    line, column = _Lines(text).place(max(0, int(found[1]) - 1))
    return Fault(file, line, column, f"is not JSON with comments: {told}")


class _Lines:
    """Offsets of a text as lines and columns, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def _scan(file: Path, text: str, places: dict[Steps, tuple[int, int]]) -> Iterator[Fault]:
    path: list[str | int] = []
    kinds: list[str] = []
    awaits_key = False
    lines = _Lines(text)
    for token in _TOKEN.finditer(text):
        word = token.group()
        if token.lastgroup == "skip":
            continue
        if word in {"}", "]"}:
            kinds.pop()
            path.pop()
            awaits_key = False
        elif word == ",":
            awaits_key = kinds[-1] == "{"
            last = path[-1]
            path[-1] = last + 1 if isinstance(last, int) else last
        elif awaits_key:
            path[-1] = pyjson5.decode(word) if token.lastgroup == "text" else word
            place = lines.place(token.start())
            if tuple(path) in places:
                first = places[tuple(path)][0]
                yield Fault(file, *place, f"the key {path[-1]!r} is there twice (line {first})")
            places[tuple(path)] = place
            awaits_key = False
        elif word != ":":
            places.setdefault(tuple(path), lines.place(token.start()))
            if word in {"{", "["}:
                kinds.append(word)
                path.append("" if word == "{" else 0)
                awaits_key = word == "{"


def _odd_values(value: object, path: Steps) -> Iterator[tuple[Steps, str]]:
    match value:
        case dict():
            for key, inner in value.items():
                yield from _odd_values(inner, (*path, key))
        case list():
            for index, inner in enumerate(value):
                yield from _odd_values(inner, (*path, index))
        case float() if not math.isfinite(value):
            yield path, f"{value} is not a number that can be used here"
        case _:
            pass
