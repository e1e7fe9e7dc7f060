"""`harness-batch query`: read-only SQL over the history, or over one run."""

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from harness_batch.errors import Unsupported

Rows = tuple[tuple[Any, ...], ...]


@click.command()
@click.argument("sql")
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    envvar="HARNESS_BATCH_DB",
    metavar="FILE",
    help="The database, instead of .harness/history.duckdb.",
)
@click.option(
    "--run", "run_word", metavar="RUN", help="One run's database: an id, a folder, `last`."
)
@click.option(
    "--format",
    "form",
    default="table",
    show_default=True,
    type=click.Choice(["table", "csv", "json", "markdown", "parquet"]),
    help="How the answer is written.",
)
def command(sql: str, db: Path | None, run_word: str | None, form: str) -> None:
    """Answer SQL from the history. Nothing can be changed and no other file can be read."""
    from harness_batch.app.finish import ensured
    from harness_batch.app.places import harness_of, history_of
    from harness_batch.store.history import open_readonly_for_user_sql
    from harness_batch.store.runs import find_run

    if form == "parquet":
        raise Unsupported("--format parquet is not supported by this version")
    if run_word is not None:
        path = ensured(find_run(run_word, harness_of(Path.cwd()))).database
    else:
        path = history_of(db, Path.cwd())
    with open_readonly_for_user_sql(path) as history:
        answer = history.ask(sql)
    click.echo(_FORMS[form](answer.columns, answer.rows), nl=False)


def _table(columns: tuple[str, ...], rows: Rows) -> str:
    texts = [tuple(map(_text, row)) for row in rows]
    names = tuple(map(_text, columns))  # data too, in a PIVOT
    widths = [max(map(len, column)) for column in zip(names, *texts, strict=True)]
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]

    def line(cells: tuple[str, ...]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return "  ".join(padded).rstrip() + "\n"

    return line(names) + line(tuple("-" * width for width in widths)) + "".join(map(line, texts))


def _csv(columns: tuple[str, ...], rows: Rows) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(_text, columns))
    writer.writerows(tuple(_text(value, "") for value in row) for row in rows)
    return out.getvalue()


def _json(columns: tuple[str, ...], rows: Rows) -> str:
    import json

    objects = [dict(zip(columns, map(_json_value, row), strict=True)) for row in rows]
    text = json.dumps(objects, default=str, ensure_ascii=False, indent=2, allow_nan=False)
    return text + "\n"


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


def _markdown(columns: tuple[str, ...], rows: Rows) -> str:
    from harness_batch_reports.hostile import cell

    def line(cells: tuple[str, ...]) -> str:
        return f"| {' | '.join(cells)} |\n"

    names = tuple(name if name.isidentifier() else cell(name) for name in columns)
    head = line(names) + line(("---",) * len(columns))
    return head + "".join(line(tuple(cell(_text(value)) for value in row)) for row in rows)


def _text(value: object, null: str = "NULL") -> str:
    if value is None:
        return null
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return "".join(char if char.isprintable() else " " for char in text)


_FORMS = {"table": _table, "csv": _csv, "json": _json, "markdown": _markdown}
