"""What templates may cost: work and memory are counted, and large values are foreseen.

Rules, each of which closes a way to hang or to fill the memory:

- a value is weighed with its shared parts counted each time, so nothing doubles itself unseen;
- what an operator, filter or method would make is estimated before it is made.

The budget is counted in work, not in time; the processor time beside it is a second line.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from attrs import Factory, define
from jinja2 import Undefined
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.utils import Namespace

Value: TypeAlias = Any
"""Whatever an expression of a template comes to."""

MAX_WORK = 5_000_000
"""Characters, items and turns of loops together, for all texts of one rendering."""
MAX_VALUE = 2_000_000
"""Characters and items of one value."""
ITEM = 4
"""What one place of a list or dict costs beside what stands there."""
TURN = 4
"""What one turn of a loop costs beside what it prints."""
CALL = 50
"""What one call costs beside what it gives."""
MAX_SECONDS = 5.0
"""Processor time of one rendering."""
MAX_WIDTH = 10_000
MAX_WRAPPED = 100_000
"""Wrapping one endless word is quadratic."""
MAX_INTEGER_BITS = 4_096

_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(?:\*|\d{4,})")


class TemplateTooExpensive(TemplateRuntimeError):
    """A template wants more work or memory than a recipe has a use for."""


def weight(value: object) -> int:
    """Characters and items of a value, shared parts counted each time; stops above MAX_VALUE."""
    total = 0
    rest = [value]
    while rest and total <= MAX_VALUE:
        match rest.pop():
            case str() | bytes() as text:
                total += max(len(text), 1)
            case bool() | float() | None:
                total += 1
            case int() as number:
                total += 1 + number.bit_length() // 8
            case dict() as entries:
                total += ITEM * (1 + len(entries))
                rest.extend(entries)
                rest.extend(entries.values())
            case list() | tuple() | set() | frozenset() as items:
                total += ITEM * (1 + len(items))
                rest.extend(items)
            case Namespace():
                raise TemplateTooExpensive("a namespace cannot be printed, listed or filtered")
            case Undefined() as missing if missing is not value:
                str(missing)  # raises: undefined parts of a list are undefined too
            case _:
                total += 1
    return total


@define
class Budget:
    """What is left of one rendering's work."""

    work: int = MAX_WORK
    deadline: float = Factory(lambda: time.thread_time() + MAX_SECONDS)

    def spend(self, amount: int) -> None:
        """Raises: TemplateTooExpensive when the work, one value or the time is too much."""
        if amount > MAX_VALUE:
            raise TemplateTooExpensive(f"makes a value of more than {MAX_VALUE:,} characters")
        self.work -= 1 + amount
        if self.work < 0:
            raise TemplateTooExpensive(f"needs more than {MAX_WORK:,} steps of work")
        if time.thread_time() > self.deadline:
            raise TemplateTooExpensive(f"takes more than {MAX_SECONDS:g} seconds")

    def weighed(self, value: object) -> Value:
        """The value itself, paid for."""
        self.spend(weight(value))
        return value

    def each(self, items: Iterable[Value], constant: int) -> Iterator[Value]:
        """The items, each paid for; `constant` is the text that each turn prints anyway."""
        for item in items:
            self.spend(TURN + constant)
            yield item


def estimated_operation(operator: str, left: Value, right: Value) -> int:
    """Size of what the operation would make.

    Raises: TemplateTooExpensive or SecurityError for what has no bearable size.
    """
    match operator, left, right:
        case "*", int(), int():
            size = _bits(left.bit_length() + right.bit_length())
        case "*", int(), _:
            size = weight(right) * max(left, 0)
        case "*", _, int():
            size = weight(left) * max(right, 0)
        case "**", int(), int():
            size = _bits(max(left.bit_length(), 1) * abs(right))
        case "%", str() | bytes(), _:
            size = _format_size(left, right)
        case "+", _, _:
            size = weight(left) + weight(right)
        case _:
            size = 0
    return size


def _bits(bits: int) -> int:
    if bits > MAX_INTEGER_BITS:
        raise TemplateTooExpensive(f"makes a number of more than {MAX_INTEGER_BITS:,} bits")
    return 0


def _format_size(text: Value, *values: Value, **named: Value) -> int:
    if isinstance(text, bytes) or _WIDE_FORMAT.search(str(text)):
        raise SecurityError(f"a format wider than {MAX_WIDTH:,} characters is refused")
    return weight(text) + str(text).count("%") * (MAX_WIDTH // 10 + weight([values, named]))


def _width(_value: Value, width: Value = 0, *_rest: Value, **named: Value) -> int:
    for number in (width, *named.values()):
        if isinstance(number, int) and number > MAX_WIDTH:
            raise TemplateTooExpensive(f"asks for a width of more than {MAX_WIDTH:,}")
    return 0


def _indent_size(text: Value, width: Value = 4, *_rest: Value, **_named: Value) -> int:
    each = len(width) if isinstance(width, str) else max(int(width), 0)
    return weight(text) + (str(text).count("\n") + 1) * each


def _json_size(value: Value, indent: Value = None, *_rest: Value, **_named: Value) -> int:
    """Indenting makes at most as many lines as there are items and characters."""
    if isinstance(indent, int) and indent > 16:
        raise TemplateTooExpensive("indents JSON by more than 16")
    return weight(value)


def _join_size(items: Value, separator: Value = "", *_rest: Value, **named: Value) -> int:
    glue = weight(named.get("d", separator))
    count = len(items) if hasattr(items, "__len__") else MAX_VALUE // max(glue, 10)
    return weight(items) + count * glue


def _replace_size(
    text: Value, old: Value = "", new: Value = "", *_rest: Value, **named: Value
) -> int:
    text, old, new = str(text), str(named.get("old", old)), str(named.get("new", new))
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def _wrap_size(text: Value, _width: Value = 79, *rest: Value, **named: Value) -> int:
    if weight(text) > MAX_WRAPPED:
        raise TemplateTooExpensive(f"wraps a text of more than {MAX_WRAPPED:,} characters")
    return weight(text) * (1 + weight([rest, named]))


def _round_size(_value: Value, precision: Value = 0, *_rest: Value, **named: Value) -> int:
    digits: Value = named.get("precision", precision)
    if abs(int(digits)) > 300:
        raise TemplateTooExpensive("rounds to more than 300 digits")
    return 0


def _sum_size(_items: Value, _attribute: Value = None, start: Value = 0, **named: Value) -> int:
    start = named.get("start", start)
    if not isinstance(start, int | float):
        raise SecurityError("`sum` adds numbers only")
    return 0


ESTIMATES: dict[str, Callable[..., int]] = {
    "batch": _width,
    "center": _width,
    "format": _format_size,
    "indent": _indent_size,
    "join": _join_size,
    "replace": _replace_size,
    "round": _round_size,
    "slice": _width,
    "sum": _sum_size,
    "tojson": _json_size,
    "wordwrap": _wrap_size,
}
"""Filter or method of texts -> size of what it would make, or TemplateTooExpensive."""
