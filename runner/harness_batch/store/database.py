"""DuckDB, the edge: opened the one safe way, written, upgraded; its errors are StorageErrors.

One thread at a time per connection. Nothing but DuckDB may open a database file while a connection
of this process has it open: closing another descriptor would drop DuckDB's own lock.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import duckdb

from harness_batch.errors import StorageError
from harness_batch.store.rows import TABLES, Row
from harness_batch.store.values import row_maker

SCHEMA_VERSION: Final = 3
"""Raised whenever schema.sql, views.sql or views/ changes; they only ever add."""

Action = Literal["insert", "upsert"]
Config = dict[str, str | bool | int | float | list[str]]


def closed_config() -> Config:
    """What every connection is opened with: nothing is fetched, nothing loaded, memory bounded."""
    return {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": "1GB",
        "threads": "2",
    }


def sql_file(name: str) -> str:
    """The text of one of this folder's SQL files."""
    return files("harness_batch.store").joinpath(name).read_text(encoding="utf-8")


@contextmanager
def mapped_errors(doing: str) -> Iterator[None]:
    """DuckDB's errors, and values it cannot take, as StorageErrors that say what was being done."""
    try:
        yield
    except (duckdb.Error, OSError, ValueError, RecursionError) as error:
        raise StorageError(f"{doing}: {error}") from error


def connect(path: Path) -> duckdb.DuckDBPyConnection:
    """A connection that writes; the file is made when it is missing.

    A write-ahead log that ends in zeros (a machine that lost power) is mended once; the log as it
    was stays beside it.

    Raises: StorageError.
    """
    with mapped_errors(f"cannot open the database {path}"):
        try:
            return duckdb.connect(str(path), config=closed_config())
        except duckdb.Error:
            if not _mended_log(path):
                raise
        return duckdb.connect(str(path), config=closed_config())


class Database:
    """A database of the public schema, open for writing by one owner. A context manager."""

    def __init__(self, path: Path) -> None:
        """Opens, creates or upgrades it. Raises: StorageError."""
        self.path = path
        self.connection = connect(path)
        self._empty: set[str] = set()
        with mapped_errors(f"cannot prepare the database {path}"):
            try:
                is_new = stored_version(self.connection) == 0
                upgrade(self.connection)
                self.connection.execute("DELETE FROM projected")
                self._makers = _makers(self.connection)
                if is_new:
                    self._empty.update(TABLES)
            except duckdb.Error:
                self.connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.connection.close()

    def write(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Puts the rows in, in place of rows with their keys: all of them or none.

        Keys within one table must be distinct. Raises: StorageError.
        """
        with mapped_errors(f"cannot write to the database {self.path}"):
            self.connection.execute("BEGIN")
            try:
                for table, new in rows.items():
                    make = self._makers[table]
                    # Into an empty table there is nothing to replace: half the cost.
                    action: Action = "insert" if table in self._empty else "upsert"
                    with self.connection.appender(table, action=action) as appender:
                        appender.append_rows([make(row) for row in new])
                self.connection.execute("COMMIT")
                self._empty -= rows.keys()
            except BaseException:
                self._roll_back()
                raise

    def close(self, reached: Mapping[str, int]) -> None:
        """Computes the sessions' totals, folds the log into the file and closes it.

        `reached`: run -> `seq` of its last event; from now on the database is known to be whole.

        Raises: StorageError.
        """
        with mapped_errors(f"cannot close the database {self.path}"):
            try:
                self.connection.execute("BEGIN")
                self.connection.execute(sql_file("totals.sql"))
                for mark in reached.items():
                    self.connection.execute(
                        "INSERT OR REPLACE INTO projected VALUES (?, ?)", list(mark)
                    )
                self.connection.execute("COMMIT")
                self.connection.execute("CHECKPOINT")
            finally:
                self.connection.close()

    def abandon(self) -> None:
        """Closes what can be closed of a database that failed; never raises."""
        with suppress(duckdb.Error):
            self.connection.close()

    def _roll_back(self) -> None:
        # When no transaction is open any more, or the instance is lost, the first error tells why.
        with suppress(duckdb.Error):
            self.connection.execute("ROLLBACK")


def reached(path: Path, run_id: str) -> int | None:
    """`seq` of a run's last event in a whole database; None when it is not whole or not this."""
    try:
        with duckdb.connect(str(path), read_only=True, config=closed_config()) as connection:
            if stored_version(connection) != SCHEMA_VERSION:
                return None
            row = connection.execute(
                "SELECT seq FROM projected WHERE run_id = ?", [run_id]
            ).fetchone()
    except duckdb.Error:
        return None
    return int(row[0]) if row else None


def upgrade(connection: duckdb.DuckDBPyConnection) -> None:
    """Brings an empty or older database to this version; a newer one is left as it is."""
    version = stored_version(connection)
    if version >= SCHEMA_VERSION:
        return
    connection.execute("BEGIN")
    connection.execute(sql_file("schema.sql"))
    if version:
        _add_missing_columns(connection)
    create_views(connection)
    connection.execute(
        "INSERT INTO schema_version VALUES (?, ?)", [SCHEMA_VERSION, datetime.now(UTC)]
    )
    connection.execute("COMMIT")


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """The views of this version, over the tables that the connection has."""
    connection.execute(sql_file("views.sql"))
    for name, sql in named_views().items():
        connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS\n{sql}')


def named_views() -> dict[str, str]:
    """What people ask: the name of each view and its SQL, the question in its first line."""
    there = files("harness_batch.store").joinpath("views").iterdir()
    named = {path.name: path for path in there if path.name.endswith(".sql")}
    return {name.removesuffix(".sql"): named[name].read_text("utf-8") for name in sorted(named)}


def _add_missing_columns(connection: duckdb.DuckDBPyConnection) -> None:
    present = columns(connection)
    with duckdb.connect(config=closed_config()) as fresh:
        fresh.execute(sql_file("schema.sql"))
        for table, wanted in columns(fresh).items():
            for name, kind in wanted.items():
                if name not in present[table]:
                    connection.execute(f'ALTER TABLE "{table}" ADD COLUMN "{name}" {kind}')


def stored_version(connection: duckdb.DuckDBPyConnection) -> int:
    """The newest schema version of an open database; 0 when it has none."""
    try:
        row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    except duckdb.CatalogException:
        return 0
    return int(row[0]) if row else 0


def columns(
    connection: duckdb.DuckDBPyConnection, catalog: str | None = None
) -> dict[str, dict[str, str]]:
    """Table -> column -> type, in order, of the open database or of an attached one."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in connection.execute(
        "SELECT c.table_name, c.column_name, c.data_type FROM duckdb_columns() AS c "
        "JOIN duckdb_tables() AS t ON t.table_oid = c.table_oid "
        "AND t.database_name = c.database_name "
        "WHERE c.database_name = coalesce(?, current_database()) AND NOT c.internal "
        "ORDER BY c.table_name, c.column_index",
        [catalog],
    ).fetchall():
        found.setdefault(table, {})[column] = kind
    return found


def _makers(
    connection: duckdb.DuckDBPyConnection,
) -> dict[str, Callable[[Row], tuple[Any, ...]]]:
    present = columns(connection)
    return {name: row_maker(present[name]) for name in TABLES}


def _mended_log(path: Path) -> bool:
    """Whether the write-ahead log ended in zeros, which are now cut off."""
    log = path.with_name(path.name + ".wal")
    if not log.is_file():
        return False
    data = log.read_bytes()
    whole = data.rstrip(b"\0")
    if len(whole) == len(data):
        return False
    log.replace(log.with_name(log.name + ".damaged"))
    log.write_bytes(whole)
    return True
