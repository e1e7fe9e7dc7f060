"""An answer of the database, written out: as a table, CSV, JSON, Markdown. Row by row, any size.

What an agent or a repository wrote may stand in it: nothing gets through that a terminal obeys.
"""

import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, Final, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Iterable[Row]

FORMS: Final = ("table", "csv", "json", "markdown")
_MEASURED: Final = 1000
"""Rows that decide how wide the columns of a table are; later ones may stick out."""


def written(form: str, columns: tuple[str, ...], rows: Rows) -> Iterator[str]:
    """The pieces of the text, each of whole lines."""
    forms: dict[str, Callable[[tuple[str, ...], Rows], Iterator[str]]] = {
        "table": _table,
        "csv": _csv,
        "json": _json,
        "markdown": _markdown,
    }
    return forms[form](columns, rows)


def _table(columns: tuple[str, ...], rows: Rows) -> Iterator[str]:
    rest = iter(rows)
    first = list(itertools.islice(rest, _MEASURED))
    texts = [tuple(map(cell_text, row)) for row in first]
    names = tuple(map(cell_text, columns))  # data too, in a PIVOT
    widths = [max(map(len, column)) for column in zip(names, *texts, strict=True)]
    right = [
        all(isinstance(row[i], int | float | Decimal | None) for row in first)
        for i in range(len(columns))
    ]

    def line(cells: tuple[str, ...]) -> str:
        padded = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip() + "\n"

    yield line(names)
    yield line(tuple("-" * width for width in widths))
    yield from map(line, texts)
    for row in rest:
        yield line(tuple(map(cell_text, row)))


def _csv(columns: tuple[str, ...], rows: Rows) -> Iterator[str]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in itertools.chain([columns], rows):
        writer.writerow(map(_lines_kept, row))
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def _lines_kept(value: object) -> str:
    """As a cell's text, but with its line breaks: CSV has quotes for them."""
    return "" if value is None else _inert(_plain(value))


def _inert(text: str) -> str:
    """Nothing that a terminal or a CI system's log reader would obey."""
    if text.isascii() and text.isprintable() and "::" not in text and "##" not in text:
        return text
    from harness_batch_reports.hostile import inert

    return inert(text)


def _json(columns: tuple[str, ...], rows: Rows) -> Iterator[str]:
    names = _distinct(columns)
    opened = "[\n"
    for row in rows:
        record = dict(zip(names, map(_json_value, row), strict=True))
        text = json.dumps(record, default=_plain, ensure_ascii=False, indent=2, allow_nan=False)
        yield opened + "\n".join(f"  {line}" for line in _harmless(text).split("\n"))
        opened = ",\n"
    yield "[]\n" if opened == "[\n" else "\n]\n"


def _harmless(text: str) -> str:
    """The same JSON, with what a terminal or a log reader might obey as escapes."""
    from harness_batch_reports.hostile import json_inert

    if not text.isascii():
        text = "".join(
            char if char == "\n" or char.isprintable() else json.dumps(char)[1:-1] for char in text
        )
    return json_inert(text)


def _distinct(columns: tuple[str, ...]) -> list[str]:
    """Two columns of one name are two keys: `n`, `n_1`."""
    seen: dict[str, int] = {}
    names = []
    for name in columns:
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.append(f"{name}_{count}" if count else name)
    return names


def _json_value(value: object) -> object:
    """The value without NaN and infinities, which JSON has no words for: null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case _:
            return value


def _markdown(columns: tuple[str, ...], rows: Rows) -> Iterator[str]:
    from harness_batch_reports.hostile import cell

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    yield line(name if name.isidentifier() else cell(name) for name in columns)
    yield line(["---"] * len(columns))
    for row in rows:
        yield line(cell(cell_text(value)) for value in row)


def cell_text(value: object) -> str:
    """One line of a table; what is not printable is a space."""
    if value is None:
        return "NULL"
    text = _inert(_plain(value))
    return text if text.isprintable() else " ".join(text.splitlines()).replace("\t", " ")


def _plain(value: object) -> str:
    match value:
        case Decimal():
            return f"{value:f}"
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case _:
            return str(value)
