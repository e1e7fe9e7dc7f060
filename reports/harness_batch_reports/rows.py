"""Rows of the database as typed records: strict where the database could lie, never lax.

cattrs alone would turn NULL into "None" and 1.9 into 1; here a column of another type than the
record's field is a ReportError that names the view, since it means a database of another version.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias, TypeVar

import duckdb
from attrs import frozen
from cattrs import BaseValidationError, Converter

from harness_batch_reports.records import ReportError, Row

Record = TypeVar("Record")

Values: TypeAlias = Mapping[str, str | list[str] | None]
"""What a question's `$names` stand for."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _time(value: object, _: type) -> datetime:
    """The views' times come as microseconds since 1970: no time zone data is needed."""
    return _EPOCH + timedelta(microseconds=_exactly(int, value))


def _money(value: object, _: type) -> Decimal:
    return _exactly(Decimal, value)


def _number(value: object, _: type) -> float:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    return _exactly(float, value)


def _exactly(kind: type[Record], value: object) -> Record:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not {kind.__name__}")
    return value


def _converter() -> Converter:
    converter = Converter()
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, lambda value, kind: _exactly(kind, value))
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(datetime, _time)
    converter.register_structure_hook(Decimal, _money)
    return converter


_CONVERTER = _converter()


def record(kind: type[Record], row: Row) -> Record:
    """The row as `kind`; NULL in a JSON column is the empty object or list.

    Raises: ReportError when a column is missing or of another type.
    """
    try:
        return _CONVERTER.structure(row, kind)
    except BaseValidationError as fault:
        first = fault.exceptions[0]
        raise ReportError(
            f"the database is of another version: {kind.__name__.lower()}: {first}"
        ) from fault


@frozen
class Database:
    """An open database that answers the questions in `sql/`."""

    path: Path
    connection: duckdb.DuckDBPyConnection

    def rows(self, question: str, values: Values) -> list[Row]:
        """The answer to `sql/<question>.sql`; JSON columns are parsed, NULL lists are empty.

        Raises: ReportError when the database has no such views.
        """
        sql = files("harness_batch_reports").joinpath("sql", f"{question}.sql").read_text("utf-8")
        try:
            cursor = self.connection.execute(sql, dict(values))
            columns = [(name, str(kind)) for name, kind, *_ in cursor.description or ()]
            found = cursor.fetchall()
        except (duckdb.CatalogException, duckdb.BinderException) as fault:
            first = str(fault).partition("\n")[0]
            raise ReportError(f"{self.path} holds no run of this version: {first}") from fault
        except duckdb.Error as fault:
            raise ReportError(f"{self.path} cannot be read: {fault}") from fault
        return [_row(columns, cells) for cells in found]

    def records(self, question: str, kind: type[Record], values: Values) -> tuple[Record, ...]:
        """`rows`, each as `kind`."""
        return tuple(record(kind, row) for row in self.rows(question, values))


def _row(columns: list[tuple[str, str]], cells: tuple[object, ...]) -> Row:
    return {
        name: _parsed(name, cell) if kind == "JSON" else cell
        for (name, kind), cell in zip(columns, cells, strict=True)
    }


_LISTS = frozenset({"argv", "patch_paths"})


def _parsed(name: str, value: object) -> object:
    parsed = None if value is None else json.loads(_exactly(str, value))
    if parsed is None:
        return [] if name in _LISTS else {}
    return parsed
