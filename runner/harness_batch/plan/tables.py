"""Tables of matrix rows from files: CSV (every cell is text) and JSON (a list of objects)."""

import csv
import json
from pathlib import Path
from typing import Any, NoReturn

MAX_BYTES = 50_000_000


class TableFault(Exception):
    """What is wrong with the table, with its line when there is one."""


def read_table(file: Path, form: str) -> list[Any]:
    """Rows as the file gives them, `form` csv or json. Raises: TableFault."""
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableFault("is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise TableFault(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > MAX_BYTES:
        raise TableFault(f"is larger than {MAX_BYTES:,} bytes")
    return _csv_rows(text) if form == "csv" else _json_rows(text)


def _csv_rows(text: str) -> list[Any]:
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    found: list[Any] = []
    try:
        header = next(reader, None)
        if header is None:
            return []
        columns = [name.strip() for name in header]
        if "" in columns or len(set(columns)) < len(columns):
            raise TableFault("line 1: every column needs a name of its own")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(columns):
                told = f"has {len(cells)} cells, the header {len(columns)}"
                raise TableFault(f"line {reader.line_num}: {told}")
            found.append(dict(zip(columns, cells, strict=True)))
    except csv.Error as error:
        raise TableFault(f"line {reader.line_num}: {error}") from None
    return found


def _json_rows(text: str) -> list[Any]:
    try:
        found = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise TableFault(f"line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise TableFault("is nested too deep") from None
    if not isinstance(found, list):
        raise TableFault("must hold a list of objects")
    return found


def _no_number(text: str) -> NoReturn:
    raise TableFault(f"{text} is not a number")
