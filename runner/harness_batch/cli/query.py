"""`harness-batch query`: read-only SQL over the history, over one run, or over Parquet files."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness_batch.cli.forms import FORMS, written
from harness_batch.cli.sources import print_all, source_of, source_options
from harness_batch.errors import UsageError
from harness_batch.limits import duration_seconds

if TYPE_CHECKING:
    from harness_batch.store.asking import UserSql


@click.command()
@click.argument("sql")
@source_options
@click.option(
    "--format",
    "form",
    default="table",
    show_default=True,
    type=click.Choice([*FORMS, "parquet"]),
    help="How the answer is written.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write there instead of stdout; parquet needs it.",
)
@click.option(
    "--max-time",
    default="60s",
    show_default=True,
    metavar="DUR",
    help="Stop a query that takes longer.",
)
def command(
    *, sql: str, db: Path | None, run_word: str | None, form: str, out: Path | None, max_time: str
) -> None:
    """Answer SQL from the history. Nothing can be changed and no other file can be read."""
    seconds = _seconds(max_time)
    source = source_of(db, run_word)
    if form == "parquet":
        if out is None:
            raise UsageError("--format parquet needs --out FILE: it is not for a terminal")
        _write_parquet(source, sql, out, seconds)
        return
    with _opened(source) as history, history.for_at_most(seconds):
        answer = history.ask(sql)
        pieces = written(form, answer.columns, answer.rows)
        if out is None:
            print_all(pieces)
        else:
            from harness_batch.store.disk import write_pieces

            write_pieces(out, (piece.encode(errors="replace") for piece in pieces))


def _write_parquet(source: Path, sql: str, out: Path, seconds: float) -> None:
    from harness_batch.store.disk import whole_file

    with (
        whole_file(out) as new,
        _opened(source, out=new) as history,
        history.for_at_most(seconds),
    ):
        history.write_parquet(sql, new)


def _opened(source: Path, out: Path | None = None) -> AbstractContextManager["UserSql"]:
    """A database's own views, or those of this version over a folder of Parquet files."""
    from harness_batch.store.asking import open_readonly_for_user_sql
    from harness_batch.store.questions import open_sets_for_user_sql

    if source.is_dir():
        return open_sets_for_user_sql(source, out=out)
    return open_readonly_for_user_sql(source, out=out)


def _seconds(text: str) -> float:
    try:
        return duration_seconds(text)
    except ValueError as error:
        raise UsageError(f"--max-time {text}: {error}") from error
