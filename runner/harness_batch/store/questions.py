"""Questions to a history: this version's views over its tables, narrowed to what is asked about.

The views are made in memory, so an older history and a folder of Parquet files answer like a new
one; the history itself is only read.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import duckdb
from attrs import frozen

from harness_batch.errors import UsageError
from harness_batch.store.asking import Answer, UserSql, close_off
from harness_batch.store.database import (
    closed_config,
    columns,
    create_views,
    mapped_errors,
    named_views,
    sql_file,
)
from harness_batch.store.history import quoted, steady
from harness_batch.store.parquet import attach_sets
from harness_batch.words import nearest

_OF_SESSION: Final = "session_id IN (SELECT session_id FROM kept_session)"
_OF_RUN: Final = "run_id IN (SELECT run_id FROM kept_session)"
_OF_MODEL: Final = "(provider, request_model) IN (SELECT (provider, request_model) FROM kept_model)"
_WHOLE: Final = {"schema_version", "projected", "price"}
"""Tables that no condition narrows."""


@frozen(kw_only=True)
class Narrowing:
    """What questions are about; None is no condition."""

    since: datetime | None = None
    """Sessions of the plan that began then or later, with their children."""
    recipe: str | None = None
    """Name of a recipe; may hold `*` and `?`."""
    model: str | None = None
    """`PROVIDER/MODEL` or the model alone; may hold `*` and `?`."""

    @property
    def narrows(self) -> bool:
        """Whether there is a condition at all."""
        return any(part is not None for part in (self.since, self.recipe, self.model))


@frozen
class Question:
    """A named view, as its file tells it."""

    name: str
    text: str
    """The question in words."""
    chart: str
    """The column that is worth a bar."""
    labels: tuple[str, ...]
    """The columns that name a bar."""


@frozen
class Questions:
    """An open history that answers by name."""

    sql: UserSql

    def answer(self, name: str) -> Answer:
        """The rows of the view. Raises: UsageError for a name that is none."""
        return self.sql.ask(named_views()[named(name).name])


def all_questions() -> tuple[Question, ...]:
    """In the order of the alphabet."""
    return tuple(_question(name, sql) for name, sql in named_views().items())


def named(name: str) -> Question:
    """Raises: UsageError that names what was meant."""
    views = named_views()
    if name not in views:
        raise UsageError(
            f"there is no question {name!r}{nearest(name, views)}; `stats --list` names all"
        )
    return _question(name, views[name])


def _question(name: str, sql: str) -> Question:
    first, second = sql.splitlines()[:2]
    chart, _, labels = second.removeprefix("-- chart: ").partition(" by ")
    return Question(name, first.removeprefix("-- "), chart, tuple(labels.split(", ")))


@contextmanager
def open_questions(path: Path, narrowing: Narrowing) -> Iterator[Questions]:
    """The history, a database or a folder of Parquet sets. Blocks; merges wait meanwhile.

    Raises: UsageError when there is no such database; StorageError when it cannot be read.
    """
    with _opened(path, narrowing) as connection:
        with mapped_errors(f"cannot read {path}"):
            connection.execute(sql_file("views.sql"))
        yield Questions(UserSql(path, connection))


@contextmanager
def open_sets_for_user_sql(folder: Path, *, out: Path | None = None) -> Iterator[UserSql]:
    """A folder of Parquet sets as a database with all views, for SQL of the user's.

    `out`: the one file that `UserSql.write_parquet` may write.

    Raises: as `open_questions`.
    """
    with _opened(folder, Narrowing(), out) as connection:
        with mapped_errors(f"cannot read {folder}"):
            create_views(connection)
        yield UserSql(folder, connection)


@contextmanager
def _opened(
    path: Path, narrowing: Narrowing, out: Path | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Nothing but a view for each table, over those of the history."""
    if not path.exists():
        raise UsageError(f"there is no database {path}; a run makes it when it ends")
    files = [] if out is None else [out]
    with steady(path), duckdb.connect(config=closed_config()) as connection:
        with mapped_errors(f"cannot read {path}"):
            if path.is_dir():
                attach_sets(connection, path)
                close_off(connection, files, [path.resolve()])
            else:
                connection.execute(f"ATTACH {quoted(path)} AS history (READ_ONLY)")
                close_off(connection, files)
            _narrow(connection, narrowing)
            _stand_in(connection, narrowing)
        yield connection


def _narrow(connection: duckdb.DuckDBPyConnection, narrowing: Narrowing) -> None:
    if not narrowing.narrows:
        return
    for name in ("since", "recipe", "model"):
        connection.execute(f"SET VARIABLE {name} = ?", [getattr(narrowing, name)])
    connection.execute(sql_file("kept.sql"))


def _stand_in(connection: duckdb.DuckDBPyConnection, narrowing: Narrowing) -> None:
    """A view for each table of this version; a column that the history lacks is NULL."""
    there = _columns_of_history(connection)
    with duckdb.connect(config=closed_config()) as fresh:
        fresh.execute(sql_file("schema.sql"))
        wanted = columns(fresh)
    for table, kinds in wanted.items():
        has = there.get(table, set())
        names = ", ".join(
            f'"{name}"' if name in has else f'CAST(NULL AS {kind}) AS "{name}"'
            for name, kind in kinds.items()
        )
        source = f'history."{table}"' if has else "(SELECT 1 WHERE false)"
        where = _condition(table, kinds) if narrowing.narrows and has else "true"
        connection.execute(
            f'CREATE VIEW "{table}" AS SELECT {names} FROM {source} WHERE {where}'  # noqa: S608 - our own names
        )


def _columns_of_history(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """Of its tables, or of the views that stand for Parquet files."""
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'history'"
    ).fetchall():
        found.setdefault(table, set()).add(column)
    return found


def _condition(table: str, kinds: Mapping[str, str]) -> str:
    """What is true of the rows that are kept."""
    if table in _WHOLE:
        return "true"
    if table == "model_call":
        return f"{_OF_SESSION} AND {_OF_MODEL}"
    if "run_id" in kinds and table != "session":
        return _OF_RUN
    return _OF_SESSION
