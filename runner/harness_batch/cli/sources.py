"""Which database a command asks, and how it prints the answer: options that several share."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import click

from harness_batch.cli.options import option
from harness_batch.errors import UsageError
from harness_batch.limits import duration_seconds

Function = TypeVar("Function", bound=Callable[..., object])


def source_options(command: Function) -> Function:
    """`--db` and `--run`."""
    for decorator in (
        option(
            "--db",
            type=click.Path(path_type=Path),
            metavar="FILE|DIR",
            help="The history, instead of .harness/history.duckdb; or a folder of Parquet files.",
        ),
        click.option(
            "--run", "run_word", metavar="RUN", help="One run's database: an id, a folder, `last`."
        ),
    )[::-1]:
        command = decorator(command)
    return command


def source_of(db: Path | None, run_word: str | None) -> Path:
    """The database that the options name. Raises: UsageError, StorageError."""
    from harness_batch.app.finish import ensured
    from harness_batch.app.places import harness_of, history_of
    from harness_batch.store.runs import find_run

    if run_word is None:
        return history_of(db, Path.cwd())
    if db is not None:
        raise UsageError("--db and --run both say where to look; choose one")
    return ensured(find_run(run_word, harness_of(Path.cwd()))).database


def moment(name: str, text: str | None) -> datetime | None:
    """`7d` ago, or a date or time (UTC without a zone). Raises: UsageError."""
    if text is None:
        return None
    try:
        return datetime.now(UTC) - timedelta(seconds=duration_seconds(text))
    except (ValueError, OverflowError):
        pass
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        told = f"{name} {text}: write how long ago (7d, 12h) or a date (2026-03-01)"
        raise UsageError(told) from error
    return given if given.tzinfo else given.replace(tzinfo=UTC)


def print_all(pieces: Iterable[str]) -> None:
    """Each piece as it comes, until all are told or the reader has gone."""
    import sys

    from harness_batch.cli.streams import is_gone

    for piece in pieces:
        sys.stdout.write(piece)
        if is_gone(sys.stdout):
            return
