"""Values out of a foreign JSON object: of the right type, or a fault with its place."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from attrs import frozen

from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject

MAX_LINE: Final = 64_000_000
"""Characters of one line of JSON; an image inside of one takes a few."""
MAX_DEPTH: Final = 200
"""Objects and lists inside of each other."""
_MOST: Final = 2**43
"""Tokens or milliseconds; a million of them can still be added up in 64 bits."""


@frozen
class Source:
    """A place in a file, for faults."""

    file: Path
    line: int = 0

    def fault(self, message: str) -> FaultyInput:
        """What is wrong here."""
        return FaultyInput([Fault(self.file, self.line, 1 if self.line else 0, message)])


@frozen
class Values:
    """An object of the file, read field by field."""

    source: Source
    body: JsonObject

    def text(self, key: str) -> str | None:
        """A text; None when it is not there or null. Raises: FaultyInput."""
        value = self.body.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.source.fault(f"`{key}` is no text")

    def need(self, key: str) -> str:
        """A text that must be there. Raises: FaultyInput."""
        value = self.text(key)
        if not value:
            raise self.source.fault(f"`{key}` is missing")
        return value

    def whole(self, key: str) -> int:
        """A count; 0 when it is not there or null. Raises: FaultyInput."""
        value = self.body.get(key)
        if value is None:
            return 0
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
            raise self.source.fault(f"`{key}` is no count: {str(value)[:40]!r}")
        return value

    def money(self, key: str) -> Decimal | None:
        """US dollars; None when it is not there, null or no amount."""
        value = self.body.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            return None
        return amount if amount.is_finite() and 0 <= amount < 1_000_000 else None

    def object(self, key: str) -> "Values | None":
        """An object; None when it is not there or null. Raises: FaultyInput."""
        value = self.body.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.source.fault(f"`{key}` is no object")
        return Values(self.source, value)

    def objects(self, key: str) -> "list[Values]":
        """The objects of a list; none when it is not there. Raises: FaultyInput."""
        value = self.body.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.source.fault(f"`{key}` is no list")
        return [Values(self.source, one) for one in value if isinstance(one, dict)]

    def time(self, key: str) -> datetime:
        """ISO 8601, or milliseconds since 1970. Raises: FaultyInput."""
        value = self.body.get(key)
        try:
            if isinstance(value, str):
                moment = datetime.fromisoformat(value)
                return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return datetime.fromtimestamp(value / 1000, UTC)
        except (ValueError, OverflowError, OSError):
            pass
        raise self.source.fault(f"`{key}` is no time: {str(value)[:40]!r}")


def parsed(text: str, source: Source) -> JsonObject:
    """One JSON object. Raises: FaultyInput."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise source.fault(f"this is no JSON ({said}); is the file cut off?") from None
    if not isinstance(value, dict):
        raise source.fault("this is no JSON object")
    if is_deep(value, text):
        raise source.fault("it is nested too deeply for a transcript")
    return value


def is_deep(value: object, text: str) -> bool:
    """Whether the value of a JSON text is nested deeper than can be masked and written again."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def lines(file: Path) -> Iterator[Values]:
    """Each line as an object; empty ones are left out. Raises: FaultyInput."""
    with file.open(encoding="utf-8", errors="replace") as stream:
        for number, text in enumerate(iter(lambda: stream.readline(MAX_LINE), ""), 1):
            source = Source(file, number)
            if len(text) >= MAX_LINE:
                raise source.fault("the line is too long for a transcript")
            if text.strip():
                yield Values(source, parsed(text, source))
