"""The history: all runs in one database, merged in one at a time.

A merge is one transaction under a lock on a file beside the history; a merge that fails or dies
leaves the history as it was and the run's own database untouched.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from harness_batch.errors import StorageError
from harness_batch.store.database import (
    columns,
    connect,
    mapped_errors,
    upgrade,
)
from harness_batch.store.lock import WAIT_SECONDS, held

RUN: Final = "merged_run"
"""The name under which the run's database is attached."""
_OF_RUN = {"run", "session", "notice", "provider_limit", "projected"}
"""Tables whose rows name their run; the others name their session."""
_SHARED = {"schema_version", "price"}


def merge(run_db: Path, history_db: Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
    """Puts a run's database into the history, in place of what the history has of that run.

    Blocks: run it in a thread. The run's database must not be open in this process.

    Raises: StorageError; the history is then as it was.
    """
    if not run_db.is_file():
        raise StorageError(f"there is no database {run_db} to merge")
    with mapped_errors(f"cannot make {history_db.parent}"):
        history_db.parent.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(history_db)
    with held(_lock_of(history_db), "exclusive", wait_seconds=wait_seconds):
        connection = connect(history_db)
        with mapped_errors(f"cannot merge {run_db} into {history_db}"):
            try:
                upgrade(connection)
                connection.execute(f"ATTACH {quoted(run_db)} AS {RUN} (READ_ONLY)")
                _replace_run(connection)
                connection.execute(f"DETACH {RUN}")
            finally:
                connection.close()


@contextmanager
def steady(path: Path) -> Iterator[None]:
    """No merge while the block runs. A database that none was merged into has no lock."""
    lock = _lock_of(path)
    if os.access(lock, os.W_OK):
        with held(lock, "shared", wait_seconds=WAIT_SECONDS):
            yield
    else:
        yield


def _replace_run(connection: duckdb.DuckDBPyConnection) -> None:
    """All rows of the attached run in place of the history's; columns that both sides have.

    Only names of tables and columns go into the SQL, and only those that our own schema has.
    """
    ours = columns(connection)
    theirs = columns(connection, RUN)
    tables = [name for name in theirs if name in ours and name not in _SHARED]
    connection.execute("BEGIN")
    if _is_known(connection):
        for table in sorted(tables, key=lambda name: name in _OF_RUN):
            # Rows are found by their session, so sessions go last.
            connection.execute(f'DELETE FROM "{table}" WHERE {_owner(table)}')  # noqa: S608 - our own names
    for table in [*tables, *({"price"} & theirs.keys() & ours.keys())]:
        if connection.execute(f'SELECT 1 FROM {RUN}."{table}" LIMIT 1').fetchone():  # noqa: S608 - as above
            names = ", ".join(f'"{name}"' for name in theirs[table] if name in ours[table])
            connection.execute(
                f'INSERT OR REPLACE INTO "{table}" ({names}) SELECT {names} FROM {RUN}."{table}"'  # noqa: S608 - as above
            )
    _absorb_parts(connection)
    connection.execute("COMMIT")


def _absorb_parts(connection: duckdb.DuckDBPyConnection) -> None:
    """A run that was joined from others stands for them: their sessions are its own now."""
    parts = "SELECT unnest(joined_runs::VARCHAR[]) FROM main.run WHERE joined_runs IS NOT NULL"
    for table in sorted(_OF_RUN - {"session"}):
        connection.execute(f'DELETE FROM main."{table}" WHERE run_id IN ({parts})')  # noqa: S608 - our own names


def _is_known(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the history has a run that is merged in."""
    known = connection.execute(f"SELECT 1 FROM main.run JOIN {RUN}.run USING (run_id)").fetchone()  # noqa: S608 - as above
    return known is not None


def _owner(table: str) -> str:
    """What is true of the rows of the runs that are merged in."""
    run_ids = f"run_id IN (SELECT run_id FROM {RUN}.run)"  # noqa: S608 - as above
    if table in _OF_RUN:
        return run_ids
    return f"session_id IN (SELECT session_id FROM main.session WHERE {run_ids})"  # noqa: S608 - as above


def quoted(path: Path) -> str:
    """The path as a literal of SQL."""
    return "'" + str(path).replace("'", "''") + "'"


def _refuse_foreign(path: Path) -> None:
    """Before there is a lock nobody has merged into it: then it may be no database at all."""
    if _lock_of(path).exists() or not path.is_file():
        return
    with path.open("rb") as file:
        begin = file.read(12)
    if begin and begin[8:] != b"DUCK":
        raise StorageError(f"cannot open the database {path}: it is no DuckDB database")


def _lock_of(database: Path) -> Path:
    return database.with_name(database.name + ".lock")
