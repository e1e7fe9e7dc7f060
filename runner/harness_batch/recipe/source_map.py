"""Where each value of a recipe file stands, so that every fault can say its line and column.

A path is the keys and indexes that lead to a value. Readers (yaml_text, json_text) fill a
`Reading`; the rest of the room asks a `SourceMap`, which knows the file and, for a goose Desktop
file, that the recipe begins below `recipe:`.
"""

from pathlib import Path
from typing import Any, Literal, TypeAlias

from attrs import Factory, define, frozen

from harness_batch.errors import Fault, FaultyInput
from harness_batch.recipe.file_text import UNFIT

Trail: TypeAlias = tuple[str | int, ...]

Json: TypeAlias = Any
"""A parsed value whose form the schema has checked or is about to check."""

MAX_VALUES = 50_000
"""Values of one file; an alias counts as much as what it stands for."""
MAX_DEPTH = 64
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
MAX_DIGITS = 40
"""Characters of one number."""


@frozen
class Place:
    """Line and column (1-based) of a value, and the line on which its text begins."""

    line: int
    column: int
    text_line: int
    """Differs from `line` for YAML block texts (`|`), which begin below their mark."""


@define
class Reading:
    """A document being read: its value, places by path, and the faults that reading survives."""

    file: Path
    value: Any = None
    places: dict[Trail, Place] = Factory(dict)
    key_places: dict[Trail, Place] = Factory(dict)
    faults: list[Fault] = Factory(list)
    _count: int = 0

    def note(self, message: str, place: Place) -> None:
        """Record a fault and go on reading."""
        self.faults.append(Fault(self.file, place.line, place.column, message))

    def stopped(self, message: str, place: Place) -> FaultyInput:
        """The error for a fault that ends the reading, with all that were found before it."""
        self.note(message, place)
        return FaultyInput(self.faults)

    def enter(self, trail: Trail, place: Place) -> None:
        """Count a value and remember its place.

        Raises: FaultyInput when the document grows too deep or too large.
        """
        if len(trail) > MAX_DEPTH:
            raise self.stopped(TOO_DEEP, place)
        self.count(1, place)
        self.places[trail] = place

    def count(self, values: int, place: Place) -> None:
        """Count values.

        Raises: FaultyInput when there are too many.
        """
        self._count += values
        if self._count > MAX_VALUES:
            message = f"more than {MAX_VALUES} values (an alias counts as what it stands for)"
            raise self.stopped(message, place)

    def fit(self, text: str, place: Place) -> str:
        """The text; NUL and halves of surrogate pairs, which escapes can spell, are a fault."""
        odd = UNFIT.search(text)
        if odd is None:
            return text
        self.note(f"U+{ord(odd.group()):04X} is no character of a text", place)
        return UNFIT.sub("\ufffd", text)

    def twice(self, trail: Trail, place: Place) -> bool:
        """Remember the place of a key; a key that was there before is a fault."""
        first = self.key_places.get(trail)
        if first is not None:
            self.note(f"the key `{trail[-1]}` is there twice, first in line {first.line}", place)
            return True
        self.key_places[trail] = place
        return False


@frozen
class SourceMap:
    """Turns a path into a place of the file. `root` is where the recipe begins in the document."""

    file: Path
    reading: Reading
    root: Trail = ()

    def place(self, trail: Trail) -> Place:
        """Place of the value, else of its nearest ancestor that stands in the file."""
        whole = (*self.root, *trail)
        for length in range(len(whole), -1, -1):
            found = self.reading.places.get(whole[:length])
            if found is not None:
                return found
        return Place(1, 1, 1)

    def key_place(self, trail: Trail) -> Place:
        """Place of the key that names the value."""
        return self.reading.key_places.get((*self.root, *trail)) or self.place(trail)

    def stands_at(self, trail: Trail, other: Trail) -> None:
        """Let faults of a value that was derived point to where it comes from."""
        self.reading.places[(*self.root, *trail)] = self.place(other)

    def line_of(self, trail: Trail, text_line: int) -> tuple[int, int]:
        """Line and column in the file of a line (1-based) of the text at the path."""
        place = self.place(trail)
        if place.text_line == place.line:
            return place.line, place.column
        return place.text_line + text_line - 1, 1

    def fault(
        self, trail: Trail, message: str, severity: Literal["error", "warning"] = "error"
    ) -> Fault:
        """A fault of the value at the path."""
        place = self.place(trail)
        return Fault(self.file, place.line, place.column, message, severity)

    def key_fault(
        self, trail: Trail, message: str, severity: Literal["error", "warning"] = "error"
    ) -> Fault:
        """A fault of the key that ends the path."""
        place = self.key_place(trail)
        return Fault(self.file, place.line, place.column, message, severity)
