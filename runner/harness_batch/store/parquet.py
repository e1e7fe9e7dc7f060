"""The history as Parquet: a folder for each run with a file for each table, and reading it back.

    DIR/<run_id>/session.parquet, DIR/<run_id>/model_call.parquet, ...

Any program that reads Parquet can ask `DIR/*/session.parquet`. A table without rows has no file.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb

from harness_batch.errors import UsageError
from harness_batch.store.database import closed_config, columns, mapped_errors, sql_file
from harness_batch.store.disk import whole_file
from harness_batch.store.history import quoted, steady

LEFT_OUT = ("schema_version", "projected")
"""Tables that say something of the database alone."""


def export(database: Path, folder: Path, run_ids: Sequence[str] = ()) -> Iterator[Path]:
    """Write the sets of these runs, or of all; the path of each set once it is whole.

    A set that is there already is replaced, file by file.

    Raises: UsageError when there is no database, or no such run; StorageError.
    """
    if not database.is_file():
        raise UsageError(f"there is no database {database}; a run makes it when it ends")
    with (
        steady(database),
        mapped_errors(f"cannot export {database}"),
        duckdb.connect(str(database), read_only=True, config=closed_config()) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'")
        runs = connection.execute("SELECT run_id FROM run ORDER BY run_id").fetchall()
        there = [run_id for (run_id,) in runs]
        if unknown := [run_id for run_id in run_ids if run_id not in there]:
            raise UsageError(f"{database} holds no run {unknown[0]}")
        tables = columns(connection)
        for run_id in run_ids or there:
            _export_run(connection, run_id, tables, folder / _segment(run_id))
            yield folder / _segment(run_id)


def _segment(run_id: str) -> str:
    """One harmless segment of a path, whatever a foreign database calls its run."""
    kept = "".join(c if c.isalnum() or c in "_.-" else "_" for c in run_id)
    return kept if kept.strip(".") else "_"


def _export_run(
    connection: duckdb.DuckDBPyConnection,
    run_id: str,
    tables: dict[str, dict[str, str]],
    folder: Path,
) -> None:
    for table, kinds in tables.items():
        if table in LEFT_OUT:
            continue
        where = _of_run(kinds)
        order = ", ".join(f'"{name}"' for name in kinds if name.endswith("_id") or name == "seq")
        rows = connection.sql(
            f'SELECT * FROM "{table}" WHERE {where} ORDER BY {order or "ALL"}',  # noqa: S608 - our own names
            params={"run_id": run_id} if "$" in where else {},
        )
        path = folder / f"{table}.parquet"
        if not rows.limit(1).fetchall():
            path.unlink(missing_ok=True)
            continue
        with whole_file(path) as new:
            rows.write_parquet(str(new), compression="zstd")


def _of_run(columns_there: Mapping[str, str]) -> str:
    """What is true of the rows of one run; rows that name none (prices) are of every run."""
    if "run_id" in columns_there:
        return "run_id = $run_id"
    if "session_id" in columns_there:
        return "session_id IN (SELECT session_id FROM session WHERE run_id = $run_id)"
    return "true"


def attach_sets(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """The sets below the folder as the database `history`: a view for each table of this version.

    Raises: UsageError when there is none.
    """
    place = folder.resolve()
    connection.execute("ATTACH ':memory:' AS history")
    with duckdb.connect(config=closed_config()) as fresh:
        fresh.execute(sql_file("schema.sql"))
        wanted = columns(fresh)
    if not any(place.glob("*/run.parquet")):
        raise UsageError(f"{folder} holds no runs as Parquet (DIR/RUN/run.parquet)")
    for table, kinds in wanted.items():
        _attach(connection, place, table, kinds)


def _attach(
    connection: duckdb.DuckDBPyConnection, place: Path, table: str, kinds: dict[str, str]
) -> None:
    files = ", ".join(quoted(path) for path in sorted(place.glob(f"*/{table}.parquet")))
    if not files:
        empty = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
        connection.execute(f'CREATE TABLE history."{table}" ({empty})')
        return
    source = f"read_parquet([{files}], union_by_name = true)"
    has = connection.sql(f"FROM {source}").columns
    given = ", ".join(
        f'CAST("{name}" AS {kind}) AS "{name}"' if name in has else f'NULL::{kind} AS "{name}"'
        for name, kind in kinds.items()
    )
    distinct = "" if {"run_id", "session_id"} & kinds.keys() else "DISTINCT "
    connection.execute(
        f'CREATE VIEW history."{table}" AS SELECT {distinct}{given} FROM {source}'  # noqa: S608 - our own names, and literals
    )
