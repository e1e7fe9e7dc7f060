"""JSON in, plain values with their places out, under the limits of YAML recipes.

JSON is not read as YAML: tabs between tokens, surrogate pairs, keys of over 1,024 characters and
`1E5` are JSON, and not all YAML readers agree about them.
"""

import json
import json.decoder
import math
import re
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from attrs import define

from harness_batch.errors import FaultyInput
from harness_batch.recipe.source_map import MAX_DIGITS, Json, Place, Reading, Trail

_QUOTED: Callable[[str, int, bool], tuple[str, int]] = vars(json.decoder)["scanstring"]
"""The standard library's scanner of a quoted text, from behind its first quote."""
_BLANK = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}


def read_json(text: str, file: Path) -> Reading:
    """The document of the text; None when it is empty. Duplicate keys are noted.

    Raises: FaultyInput when the text is no JSON or grows beyond the limits.
    """
    reading = Reading(file)
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    scanner = _Scanner(text, reading, starts)
    scanner.skip()
    if scanner.at < len(text):
        reading.value = scanner.value(())
        scanner.skip()
        if scanner.at < len(text):
            raise scanner.refused("nothing may follow the document")
    return reading


@define
class _Scanner:
    """Reads one value after the other from `at` on."""

    text: str
    reading: Reading
    line_starts: list[int]
    at: int = 0

    def skip(self) -> None:
        """Move over blanks."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def here(self) -> Place:
        """The place of `at`."""
        line = bisect_right(self.line_starts, self.at)
        return Place(line, self.at - self.line_starts[line - 1] + 1, line)

    def refused(self, message: str) -> FaultyInput:
        """The error that ends the reading at `at`."""
        return self.reading.stopped(f"is no JSON: {message}", self.here())

    def value(self, trail: Trail) -> Json:
        """The value that begins at `at`."""
        place = self.here()
        self.reading.enter(trail, place)
        match self.text[self.at : self.at + 1]:
            case "{":
                return self.mapping(trail)
            case "[":
                return self.sequence(trail)
            case '"':
                return self.string()
            case _:
                return self.word_or_number(place)

    def word_or_number(self, place: Place) -> Json:
        """One of JSON's three words, else a number."""
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        return self.number(place)

    def string(self) -> str:
        """A quoted text."""
        place = self.here()
        try:
            text, self.at = _QUOTED(self.text, self.at + 1, True)
        except json.JSONDecodeError as error:
            self.at = error.pos
            raise self.refused(error.msg[:1].lower() + error.msg[1:]) from error
        return self.reading.fit(text, place)

    def number(self, place: Place) -> int | float:
        """A number that is finite and of bearable length."""
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.refused("a value is expected here")
        self.at = match.end()
        digits = match.group()
        if len(digits) > MAX_DIGITS:
            self.reading.note(f"a number of {len(digits)} digits is too long", place)
            return 0
        if match.group(1) is None and match.group(2) is None:
            return int(digits)
        value = float(digits)
        if not math.isfinite(value):
            self.reading.note(f"`{digits}` is not a finite number", place)
            return 0.0
        return value

    def sequence(self, trail: Trail) -> list[Json]:
        """The items between the brackets."""
        items: list[Json] = []
        self.at += 1
        self.skip()
        if self.take("]"):
            return items
        while True:
            items.append(self.value((*trail, len(items))))
            if self.closed("]"):
                return items

    def mapping(self, trail: Trail) -> dict[str, Json]:
        """The entries between the braces; of a key that is there twice the first one stays."""
        entries: dict[str, Json] = {}
        self.at += 1
        self.skip()
        if self.take("}"):
            return entries
        while True:
            place = self.here()
            if not self.text.startswith('"', self.at):
                raise self.refused("a key in double quotes is expected here")
            key = self.string()
            self.skip()
            if not self.take(":"):
                raise self.refused("`:` is expected here")
            twice = self.reading.twice((*trail, key), place)
            value = self.value((*trail, f"{key} (again)" if twice else key))
            if not twice:
                entries[key] = value
            if self.closed("}"):
                return entries

    def take(self, mark: str) -> bool:
        """Move over the mark and the blanks behind it when it stands here."""
        if not self.text.startswith(mark, self.at):
            return False
        self.at += 1
        self.skip()
        return True

    def closed(self, mark: str) -> bool:
        """Whether the list ends here; else move over the comma."""
        self.skip()
        if self.text.startswith(mark, self.at):
            self.at += 1
            return True
        if not self.take(","):
            raise self.refused(f"`,` or `{mark}` is expected here")
        return False
