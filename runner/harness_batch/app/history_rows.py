"""Rows of the history for a matrix: what its SQL answers, as values that a matrix can have."""

from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

from harness_batch.messages import JsonObject

MAX_SECONDS: Final = 60.0


def rows_of_history(history: Path, sql: str, most: int) -> list[JsonObject]:
    """The first rows of the answer; none where there is no history yet. Blocks.

    Raises: UsageError with the database's own words; StorageError.
    """
    if not history.is_file():
        return []
    from harness_batch.store.asking import open_readonly_for_user_sql

    with (
        open_readonly_for_user_sql(history) as database,
        database.for_at_most(MAX_SECONDS),
    ):
        answer = database.ask(sql)
        return list(islice(_rows(answer.columns, answer.rows), most))


def _rows(columns: tuple[str, ...], rows: Any) -> Iterator[JsonObject]:  # noqa: ANN401 - cells
    for row in rows:
        yield {name: _plain(cell) for name, cell in zip(columns, row, strict=True)}


def _plain(cell: object) -> object:
    """Text, a number, true or false; anything else is left for the matrix to refuse."""
    match cell:
        case Decimal():
            return int(cell) if cell == cell.to_integral_value() else float(cell)
        case datetime() | date() | time():
            return cell.isoformat()
        case _:
            return cell
