"""All runs in one database, and what the user may ask of it."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from harness_batch.codec import encode
from harness_batch.errors import StorageError, UsageError
from harness_batch.events import Event
from harness_batch.store.asking import open_readonly_for_user_sql
from harness_batch.store.database import (
    SCHEMA_VERSION,
    Database,
    closed_config,
    stored_version,
)
from harness_batch.store.history import merge
from harness_batch.store.lock import held
from harness_batch.store.projection import rebuild
from store_events import RUN_ID, TIME, story

Runs = Callable[[int], Path]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Number -> the database of that run, of two sessions; not to be written to."""
    folder = tmp_path_factory.mktemp("runs")
    return cache(lambda n: run_db(folder / str(n), f"run_{n}"))


def run_db(folder: Path, run_id: str, sessions: int = 2) -> Path:
    """A finished run's database whose ids are all its own."""
    folder.mkdir()
    lines = []
    for seq, (payload, session_id) in enumerate(story(sessions, 1), 1):
        line = encode(Event(RUN_ID, session_id, seq, TIME, payload)).decode()
        for name in ("ses_", "att_", "msg_", "mcl_", "tcl_", "prt_"):
            line = line.replace(f'"{name}', f'"{name}{run_id}_')
        lines.append(line.replace(RUN_ID, run_id))
    (folder / "events.jsonl").write_text("".join(line + "\n" for line in lines))
    rebuild(folder / "events.jsonl", folder / "run.duckdb")
    return folder / "run.duckdb"


def copied(path: Path, folder: Path) -> Path:
    """A database of the test's own."""
    return Path(shutil.copy(path, folder))


def ask(path: Path, sql: str) -> tuple[tuple[Any, ...], ...]:
    with open_readonly_for_user_sql(path) as database:
        return tuple(database.ask(sql).rows)


def counts(path: Path) -> dict[str, int]:
    with open_readonly_for_user_sql(path) as database:
        tables = list(database.ask("SELECT table_name FROM duckdb_tables() ORDER BY 1").rows)
        return {
            table: next(iter(database.ask(f'SELECT count(*) FROM "{table}"').rows))[0]
            for (table,) in tables
        }


def test_a_run_merged_twice_is_there_once(tmp_path: Path, runs: Runs) -> None:
    first, second = runs(1), runs(2)
    history = tmp_path / "deep" / "history.duckdb"
    merge(first, history)
    once = counts(history)
    assert once == counts(first)
    merge(second, history)
    merge(first, history)
    merge(first, history)
    per_run = {table: 1 if table in ("schema_version", "price") else 2 for table in once}
    assert counts(history) == {table: n * per_run[table] for table, n in once.items()}
    assert ask(history, "SELECT run_id, count(*) FROM report_session GROUP BY 1 ORDER BY 1") == (
        ("run_1", 2),
        ("run_2", 2),
    )


def test_a_merge_replaces_the_rows_of_its_run(tmp_path: Path) -> None:
    database = run_db(tmp_path / "1", "run_1", sessions=3)
    other = run_db(tmp_path / "2", "run_2")
    history = tmp_path / "history.duckdb"
    merge(database, history)
    merge(other, history)
    merge(run_db(tmp_path / "3", "run_1", sessions=1), history)
    assert ask(history, "SELECT run_id, count(*) FROM session GROUP BY 1 ORDER BY 1") == (
        ("run_1", 1),
        ("run_2", 2),
    )
    assert ask(history, "SELECT count(*) FROM part") == (((1 + 2) * 2,),)


def test_eight_merges_at_once_all_land(tmp_path: Path, runs: Runs) -> None:
    history = tmp_path / "history.duckdb"
    databases = [runs(n) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(merge, database, history) for database in databases]:
            done.result()
    assert ask(history, "SELECT count(*) FROM run") == ((8,),)


MERGE = """
import sys
from pathlib import Path
from harness_batch.store.history import merge
merge(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_merges_of_several_processes_all_land(tmp_path: Path, runs: Runs) -> None:
    history = tmp_path / "history.duckdb"
    children = [
        subprocess.Popen([sys.executable, "-c", MERGE, str(runs(n)), str(history)])
        for n in range(3)
    ]
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]
    assert ask(history, "SELECT count(*) FROM run") == ((3,),)


KILLED = """
import os, sys
from pathlib import Path
import duckdb
from harness_batch.store import history
real = history._owner
tables = []
def dies_in_the_middle(table):
    tables.append(table)
    if len(tables) > 5:
        os.kill(os.getpid(), 9)
    return real(table)
history._owner = dies_in_the_middle
history.merge(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_merge_killed_in_the_middle_leaves_the_history_as_it_was(
    tmp_path: Path, runs: Runs
) -> None:
    history = tmp_path / "history.duckdb"
    database = runs(1)
    merge(database, history)
    before = counts(history)
    argv = [sys.executable, "-c", KILLED, str(database), str(history)]
    assert subprocess.run(argv, check=False, timeout=60).returncode == -9
    assert counts(history) == before
    merge(runs(2), history)
    assert ask(history, "SELECT count(*) FROM run") == ((2,),)


def test_a_merge_that_fails_leaves_both_databases_as_they_were(tmp_path: Path, runs: Runs) -> None:
    database = runs(1)
    before = database.read_bytes()
    (tmp_path / "history.duckdb").write_bytes(b"this is no database" * 1000)
    with pytest.raises(StorageError, match=r"cannot open the database .*history\.duckdb"):
        merge(database, tmp_path / "history.duckdb")
    assert database.read_bytes() == before
    with pytest.raises(StorageError, match="there is no database"):
        merge(tmp_path / "missing.duckdb", tmp_path / "other.duckdb")
    assert not (tmp_path / "other.duckdb").exists()


def test_a_lock_that_is_not_freed_ends_the_wait(tmp_path: Path, runs: Runs) -> None:
    database, history = runs(1), tmp_path / "history.duckdb"
    with (
        held(tmp_path / "history.duckdb.lock", "exclusive"),
        pytest.raises(StorageError, match=r"locked by another process for 0\.1 s"),
    ):
        merge(database, history, wait_seconds=0.1)
    merge(database, history)


def test_a_reader_holds_merges_up_and_not_other_readers(tmp_path: Path, runs: Runs) -> None:
    database, history = runs(1), tmp_path / "history.duckdb"
    merge(database, history)
    merged = threading.Event()

    def merge_again() -> None:
        merge(database, history)
        merged.set()

    with ThreadPoolExecutor(1) as pool, open_readonly_for_user_sql(history) as reader:
        pool.submit(merge_again)
        with held(tmp_path / "history.duckdb.lock", "shared", wait_seconds=0):
            pass
        assert not merged.is_set()
        assert tuple(reader.ask("SELECT count(*) FROM run").rows) == ((1,),)
    assert merged.is_set()


DIES_WRITING = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO projected VALUES ('run_lost', 1)")
os.kill(os.getpid(), 9)
"""


def test_a_history_that_lost_power_is_mended(tmp_path: Path, runs: Runs) -> None:
    database, history = runs(1), tmp_path / "history.duckdb"
    merge(database, history)
    argv = [sys.executable, "-c", DIES_WRITING, str(history)]
    assert subprocess.run(argv, check=False, timeout=60).returncode == -9
    log = tmp_path / "history.duckdb.wal"
    torn = log.read_bytes()[:-10] + b"\0" * 4096
    log.write_bytes(torn)
    merge(runs(2), history)
    assert ask(history, "SELECT count(*) FROM run") == ((2,),)
    assert (tmp_path / "history.duckdb.wal.damaged").read_bytes() == torn


def change(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path), config=closed_config()) as connection:
        for view in connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall():
            connection.execute(f'DROP VIEW "{view[0]}"')
        for statement in statements:
            connection.execute(statement)


def test_an_older_history_is_upgraded_and_an_older_run_still_merges(
    tmp_path: Path, runs: Runs
) -> None:
    older, newer = copied(runs(1), tmp_path), runs(2)
    history = tmp_path / "history.duckdb"
    merge(older, history)
    for path in (older, history):
        change(
            path,
            "DROP TABLE notice",
            "ALTER TABLE session DROP COLUMN detail",
            "DELETE FROM schema_version",
            "INSERT INTO schema_version VALUES (-1, now())",
        )
    merge(newer, history)
    merge(older, history)
    assert ask(history, "SELECT count(*), count(DISTINCT run_id) FROM report_session") == ((4, 2),)
    assert ask(history, "SELECT count(*) FROM notice") == ((1,),)
    with duckdb.connect(str(history), read_only=True, config=closed_config()) as connection:
        assert stored_version(connection) == SCHEMA_VERSION


def test_a_newer_database_is_left_as_it_is_and_what_is_known_is_merged(
    tmp_path: Path, runs: Runs
) -> None:
    newer, history = copied(runs(1), tmp_path), tmp_path / "history.duckdb"
    change(
        newer,
        "ALTER TABLE session ADD COLUMN mood VARCHAR",
        "CREATE TABLE tea (session_id VARCHAR)",
        "INSERT INTO schema_version VALUES (99, now())",
    )
    Database(newer).close({})
    merge(newer, history)
    assert ask(history, "SELECT count(*) FROM report_session") == ((2,),)
    assert ask(newer, "SELECT count(mood) FROM session") == ((0,),)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/export'",
        "ATTACH '{folder}/other.duckdb'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM test_store_variable",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "RESET lock_configuration",
        "CREATE TABLE mine (i INTEGER)",
        "DELETE FROM session",
        "DROP TABLE session",
        "SELECT FROM",
    ],
)
def test_the_users_sql_reads_the_database_and_nothing_else(sql: str, merged: Path) -> None:
    test_store_variable = [1, 2, 3]
    assert test_store_variable
    with (
        open_readonly_for_user_sql(merged) as database,
        pytest.raises(UsageError, match=r"history\.duckdb refuses the query: "),
    ):
        database.ask(sql.format(folder=merged.parent))
    assert {path.name for path in merged.parent.iterdir()} == {
        "1",
        "history.duckdb",
        "history.duckdb.lock",
    }


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merged")
    merge(run_db(folder / "1", "run_1"), folder / "history.duckdb")
    return folder / "history.duckdb"


def test_an_answer_has_its_columns(merged: Path) -> None:
    with open_readonly_for_user_sql(merged) as database:
        answer = database.ask("SELECT item_key AS item, steps FROM report_session; -- end")
        rows = tuple(answer.rows)
    assert answer.columns == ("item", "steps")
    assert rows == (("fix/0000", 1), ("fix/0001", 1))


def test_a_database_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="there is no database"),
        open_readonly_for_user_sql(tmp_path / "history.duckdb"),
    ):
        pass


def test_prices_are_shared_by_runs(tmp_path: Path, runs: Runs) -> None:
    history = tmp_path / "history.duckdb"
    for n in (1, 2):
        database = copied(runs(n), tmp_path)
        with Database(database) as opened:
            opened.connection.execute("INSERT INTO price VALUES ('v', 'p', 'm', 'input', 3, NULL)")
        merge(database, history)
    assert ask(history, "SELECT count(*) FROM price WHERE price_version = 'v'") == ((1,),)
