"""A database that the user's own SQL may ask: read-only, and nothing else of the machine.

No file, no network, no setting is within its reach; a question that takes too long is interrupted.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
from attrs import frozen

from harness_batch.errors import UsageError
from harness_batch.store.database import closed_config, mapped_errors
from harness_batch.store.history import quoted, steady

TOGETHER: Final = 10_000
"""Rows of an answer that are in memory at once."""


@frozen
class Answer:
    """What a query gave: names of the columns, and rows of Python values, read as they are used."""

    columns: tuple[str, ...]
    rows: Iterable[tuple[Any, ...]]


@frozen
class UserSql:
    """An open database, closed off from all else."""

    path: Path
    connection: duckdb.DuckDBPyConnection

    def ask(self, sql: str) -> Answer:
        """The answer of the (last) statement. Its rows can be read once, before the next question.

        Raises: UsageError with the database's own words when it refuses the SQL; reading the rows
        raises the same.
        """
        with self._refusals():
            if not self.connection.extract_statements(sql):
                raise UsageError("there is no SQL in the query, only blanks or comments")
            result = self.connection.execute(sql)
            names = tuple(column[0] for column in result.description or ())
        return Answer(names, self._rows(result) if names else ())

    def write_parquet(self, sql: str, out: Path) -> None:
        """The answer as a Parquet file at `out`, which the database was opened for.

        Raises: as `ask`.
        """
        with self._refusals():
            statements = self.connection.extract_statements(sql)
            if not statements:
                raise UsageError("there is no SQL in the query, only blanks or comments")
            *before, last = statements
            for statement in before:
                self.connection.execute(statement)
            if last.type != duckdb.StatementType.SELECT:
                raise UsageError("only the answer of a SELECT can be written as Parquet")
            self.connection.sql(last.query).write_parquet(str(out))

    def _rows(self, result: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
        while True:
            with self._refusals():
                rows = result.fetchmany(TOGETHER)
            if not rows:
                return
            yield from rows

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except TypeError as error:
            # The binding's word on a text that is no Unicode: the bytes of an argument.
            raise UsageError("the query holds bytes that are no UTF-8") from error
        except duckdb.InterruptException as error:
            raise UsageError("the query was stopped: it took longer than it may") from error
        except duckdb.Error as error:
            raise UsageError(f"{self.path.name} refuses the query: {error}") from error

    @contextmanager
    def for_at_most(self, seconds: float) -> Iterator[None]:
        """A question that takes longer is interrupted, also while its rows are read."""
        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self.connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def open_readonly_for_user_sql(path: Path, *, out: Path | None = None) -> Iterator[UserSql]:
    """The database, read-only, for SQL of the user's: no files, no network, no settings.

    A merge that is under way is waited for, and merges wait while the block runs. Blocks.

    Args:
        path: the database's file.
        out: the one file that may be written, see `UserSql.write_parquet`.

    Raises: UsageError when there is no such database; StorageError when it cannot be opened.
    """
    if not path.is_file():
        raise UsageError(f"there is no database {path}; a run makes it when it ends")
    with steady(path):
        with mapped_errors(f"cannot open {path}"):
            config = closed_config() | {"python_enable_replacements": "false"}
            connection = duckdb.connect(str(path), read_only=True, config=config)
        try:
            with mapped_errors(f"cannot close off {path}"):
                close_off(connection, [] if out is None else [out])
            yield UserSql(path, connection)
        finally:
            connection.close()


def holds_run(path: Path, run_id: str) -> bool:
    """Whether the database has the run. Raises: as `open_readonly_for_user_sql`."""
    with (
        open_readonly_for_user_sql(path) as opened,
        mapped_errors(f"cannot read {path}"),
    ):
        found = opened.connection.execute("SELECT 1 FROM run WHERE run_id = ?", [run_id])
        return found.fetchone() is not None


def close_off(
    connection: duckdb.DuckDBPyConnection, files: Iterable[Path] = (), folders: Iterable[Path] = ()
) -> None:
    """From now on the connection reaches what it has attached, and these paths."""
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET temp_directory = ''")
    connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, files))}]")
    connection.execute(f"SET allowed_directories = [{', '.join(map(quoted, folders))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
