"""The database that follows the journal, and the one that is rebuilt from it."""

import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import trio
import trio.lowlevel
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch import events, records
from harness_batch.codec import PAYLOADS, encode
from harness_batch.errors import StorageError
from harness_batch.events import Event
from harness_batch.store.database import Database, closed_config
from harness_batch.store.journal import Journal
from harness_batch.store.projection import Projection, agrees, ensure, rebuild
from harness_batch.store.rows import TABLES, Rows
from store_events import RUN_ID, TIME, any_event, numbered, run, session, session_story, story

Dump = dict[str, list[tuple[Any, ...]]]


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True, config=closed_config()) as connection:
        return connection.execute(sql).fetchall()


def dump(path: Path) -> Dump:
    """Every row of every table that events fill."""
    with duckdb.connect(str(path), read_only=True, config=closed_config()) as connection:
        return {
            table: connection.execute(f'SELECT * FROM "{table}" ORDER BY ALL').fetchall()
            for table in (*TABLES, "projected")
        }


def write_journal(path: Path, told: list[Event]) -> None:
    path.write_bytes(b"".join(encode(event) + b"\n" for event in told))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def no_failure(error: StorageError) -> None:
    raise AssertionError(error)


async def run_live(folder: Path, told: list[tuple[events.Payload, str | None]]) -> Path:
    """A run whose projection writes while the events come."""
    journal = Journal.open(folder / "events.jsonl", RUN_ID, now=lambda: TIME)
    projection = Projection(folder / "run.duckdb", failed=no_failure, linger_seconds=0.0)
    journal.follow(projection.take)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(projection.run)
        for n, (payload, session_id) in enumerate(told):
            journal.append(payload, session_id)
            if n % 50 == 0:
                await trio.sleep(0.001)
        projection.close()
    journal.close()
    return folder / "run.duckdb"


async def test_the_live_database_and_the_rebuilt_one_are_equal_row_by_row(tmp_path: Path) -> None:
    database = await run_live(tmp_path, list(story(15, 4)))
    live = dump(database)
    assert len(live["part"]) == 120
    assert agrees(tmp_path / "events.jsonl", database)
    database.unlink()
    assert not agrees(tmp_path / "events.jsonl", database)
    ensure(tmp_path / "events.jsonl", database)
    assert dump(database) == live
    assert names_in(tmp_path) == ["events.jsonl", "run.duckdb"]


STORY = numbered(story(2, 2))
LINES = b"".join(encode(event) + b"\n" for event in STORY)


@given(st.integers(0, len(LINES)))
@settings(max_examples=5, deadline=None)
def test_a_journal_cut_at_any_byte_gives_the_rows_of_its_whole_events(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    journal, database = folder / "events.jsonl", folder / "run.duckdb"
    journal.write_bytes(LINES[:cut])
    rebuild(journal, database)
    count = LINES[:cut].count(b"\n")
    rows = Rows()
    for event in STORY[:count]:
        rows.take(event)
    rows.finish()
    wanted = {table: len(found) for table, found in rows.drain().items()}
    found = {table: len(rows_) for table, rows_ in dump(database).items() if rows_}
    assert found == wanted | ({"projected": 1} if count else {})
    assert not count or agrees(journal, database)


@given(st.lists(any_event, max_size=20))
@settings(max_examples=6, deadline=None)
def test_any_events_can_be_projected(
    tmp_path_factory: pytest.TempPathFactory, told: list[Event]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    write_journal(folder / "events.jsonl", told)
    rebuild(folder / "events.jsonl", folder / "run.duckdb")


def test_odd_values_are_stored_as_well_as_they_can_be(tmp_path: Path) -> None:
    call = next(e.payload for e in STORY if isinstance(e.payload, events.ModelCallClosed)).call
    odd = evolve(
        call,
        error="half \ud83d, whole \ud83d\ude00, nul \0",
        started_at="yesterday",
        input_tokens=2**80,
        cost_usd=Decimal("1E+30"),
        provider_cost_usd=Decimal("0.12345678951"),
        usage_raw={"\ud800": [float("inf"), "\udfff\\ud800", 10**400], "n": 1e308},
    )
    decision = next(e.payload for e in STORY if isinstance(e.payload, events.PermissionDecided))
    write_journal(
        tmp_path / "events.jsonl",
        [
            Event(RUN_ID, "s", 1, TIME, events.ModelCallClosed(odd)),
            Event(RUN_ID, "s", 2, TIME, decision),
            Event(RUN_ID, "s", 3, TIME, decision),
        ],
    )
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert ask(
        tmp_path / "run.duckdb",
        "SELECT error, started_at, input_tokens, cost_usd, provider_cost_usd, usage_raw::VARCHAR "
        "FROM model_call",
    ) == [
        (
            "half \ufffd, whole \U0001f600, nul \0",
            None,
            2**63 - 1,
            Decimal("999999999.999999999"),
            Decimal("0.123456790"),
            '{"\ufffd": [null, "\ufffd\\\\ud800", 1' + "0" * 400 + '], "n": 1e+308}',
        )
    ]
    assert ask(tmp_path / "run.duckdb", "SELECT seq FROM permission_decision ORDER BY 1") == [
        (2,),
        (3,),
    ]


def test_totals_count_every_call_of_every_attempt_once(tmp_path: Path) -> None:
    told = numbered(session_story(1, 3))
    call = next(e.payload for e in told if isinstance(e.payload, events.ModelCallClosed)).call
    tried = evolve(call, model_call_id="mcl_first_try", step=2, try_=0, error_kind="network")
    dead = evolve(call, model_call_id="mcl_dead", step=3, duration_s=None, input_tokens=None)
    told += numbered(
        iter(
            [
                (events.ModelCallClosed(evolve(tried, input_tokens=7, cost_usd=None)), "ses_0001"),
                (events.ModelCallOpened(evolve(dead, output_tokens=None, cost_usd=None)), "ses_1"),
            ]
        )
    )
    write_journal(tmp_path / "events.jsonl", told)
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert ask(
        tmp_path / "run.duckdb",
        "SELECT attempts, steps, tool_calls, input_tokens, output_tokens, cost_usd FROM session",
    ) == [(1, 3, 3, 307, 40, Decimal("0.75"))]
    assert ask(
        tmp_path / "run.duckdb", "SELECT model_calls, unpriced_calls FROM report_session"
    ) == [(5, 2)]


def test_a_session_without_calls_cost_nothing_and_one_without_prices_is_null(
    tmp_path: Path,
) -> None:
    call = next(e.payload for e in STORY if isinstance(e.payload, events.ModelCallClosed)).call
    unpriced = evolve(call, session_id="ses_0002", cost_usd=None)
    write_journal(
        tmp_path / "events.jsonl",
        numbered(
            iter(
                [
                    (events.SessionCreated(session(1)), "ses_0001"),
                    (events.SessionCreated(session(2)), "ses_0002"),
                    (events.ModelCallClosed(unpriced), "ses_0002"),
                ]
            )
        ),
    )
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert ask(tmp_path / "run.duckdb", "SELECT cost_usd, unpriced_calls FROM report_session") == [
        (Decimal(0), 0),
        (None, 1),
    ]


def test_the_columns_of_the_contract_are_there_with_their_types(tmp_path: Path) -> None:
    Database(tmp_path / "run.duckdb").close({})
    for record, table in (
        (records.Run, "run"),
        (records.Session, "session"),
        (records.Attempt, "attempt"),
        (records.ModelCall, "model_call"),
        (records.ToolCall, "tool_call"),
        (records.PermissionDecision, "permission_decision"),
        (records.CheckResult, "check_result"),
        (records.Patch, "patch"),
        (records.Job, "job"),
        (records.Price, "price"),
    ):
        columns = dict(
            ask(
                tmp_path / "run.duckdb",
                f"SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{table}'",
            )
        )
        fields = {name.rstrip("_"): kind for name, kind in record.__annotations__.items()}
        assert set(columns) - set(fields) <= {"seq"}
        assert set(fields) <= set(columns)
        for name, kind in columns.items():
            assert kind in {
                "VARCHAR",
                "JSON",
                "BIGINT",
                "BOOLEAN",
                "DOUBLE",
                "DECIMAL(18,9)",
                "TIMESTAMP WITH TIME ZONE",
            }
            assert name.endswith(("_at", "_from")) == (kind == "TIMESTAMP WITH TIME ZONE")
            assert ("usd" in name) == (kind == "DECIMAL(18,9)")
            assert not name.endswith("_tokens") or kind == "BIGINT"


def test_calls_and_limits_of_a_provider_stand_in_one_line_a_day(tmp_path: Path) -> None:
    told = list(session_story(1, 1))
    call = next(p for p, _ in told if isinstance(p, events.ModelCallClosed)).call
    limited = evolve(call, model_call_id="mcl_limited", error_kind="rate_limit")
    change = records.ProviderLimit(
        provider="mine", requests=3, before=8, cause="rate_limit", cool_down_s=15, changed_at=TIME
    )
    quiet = evolve(change, provider="other", cause="headroom", cool_down_s=None, share_left=0.04)
    told += [
        (events.ModelCallClosed(limited), "ses_0001"),
        (events.ProviderLimitChanged(change), None),
        (events.ProviderLimitChanged(evolve(change, requests=0, before=3, cause="auth")), None),
        (events.ProviderLimitChanged(quiet), None),
    ]
    write_journal(tmp_path / "events.jsonl", numbered(iter(told)))
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")

    columns = "provider, model, rate_limited, limit_changes, least_requests, cool_downs, closed"
    assert ask(tmp_path / "run.duckdb", f"SELECT {columns} FROM rate_limits ORDER BY 1") == [
        ("mine", "m", 1, 2, 0, 2, True),
        ("other", None, 0, 1, 3, 0, False),
    ]


def test_every_kind_of_event_is_known_to_the_projection() -> None:
    shown = {type(event.payload) for event in STORY}
    assert set(PAYLOADS.values()) - shown == {events.JobUpdated, events.ProviderLimitChanged}


async def test_a_cancelled_projection_keeps_what_it_was_given(tmp_path: Path) -> None:
    projection = Projection(tmp_path / "run.duckdb", failed=no_failure, linger_seconds=60)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(projection.run)
        for event in STORY:
            projection.take(event)
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    write_journal(tmp_path / "events.jsonl", STORY)
    assert agrees(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    live = dump(tmp_path / "run.duckdb")
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert dump(tmp_path / "run.duckdb") == live


async def test_a_database_that_fails_is_loud_and_made_again_from_the_journal(
    tmp_path: Path,
) -> None:
    database = tmp_path / "run.duckdb"
    database.mkdir()
    journal = Journal.open(tmp_path / "events.jsonl", RUN_ID)
    failures: list[StorageError] = []
    projection = Projection(database, failed=failures.append, linger_seconds=0.0)
    journal.follow(projection.take)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(projection.run)
            for payload, session_id in story(1):
                journal.append(payload, session_id)
                await trio.lowlevel.checkpoint()
            projection.close()
    assert "cannot open the database" in str(failures[0])
    assert projection.error is failures[0]
    assert len(failures) == 1
    journal.close()
    database.rmdir()
    ensure(journal.path, database)
    assert ask(database, "SELECT status FROM session") == [("passed",)]


async def test_a_write_that_fails_closes_the_database_for_the_rebuild(tmp_path: Path) -> None:
    database = tmp_path / "run.duckdb"
    Database(database).close({})
    with duckdb.connect(str(database)) as connection:
        for (view,) in connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall():
            connection.execute(f'DROP VIEW "{view}"')
        connection.execute("ALTER TABLE part ALTER idx TYPE BOOLEAN USING NULL")
        connection.execute("ALTER TABLE part ALTER body TYPE DATE USING NULL")
    journal = Journal.open(tmp_path / "events.jsonl", RUN_ID)
    failures: list[StorageError] = []
    projection = Projection(database, failed=failures.append)
    journal.follow(projection.take)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(projection.run)
        for payload, session_id in story(1):
            journal.append(payload, session_id)
        projection.close()
    journal.close()
    assert "cannot write to the database" in str(failures[0])
    ensure(journal.path, database)
    assert len(ask(database, "FROM report_part")) == 6


async def test_a_resumed_run_goes_on_in_its_database(tmp_path: Path) -> None:
    told = list(story(2))
    await run_live(tmp_path, told[:20])
    await run_live(tmp_path, told[20:])
    live = dump(tmp_path / "run.duckdb")
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert dump(tmp_path / "run.duckdb") == live


LIVE = """
import sys
from pathlib import Path
import trio
from store_events import RUN_ID, story
from harness_batch.store.journal import Journal
from harness_batch.store.projection import Projection

async def main():
    folder = Path(sys.argv[1])
    journal = Journal.open(folder / "events.jsonl", RUN_ID)
    projection = Projection(folder / "run.duckdb", failed=print, linger_seconds=0.0)
    journal.follow(projection.take)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(projection.run)
        for n, (payload, session_id) in enumerate(story(10_000)):
            event = journal.append(payload, session_id)
            print(event.seq, flush=True)
            if n % 20 == 0:
                await trio.sleep(0.001)

trio.run(main)
"""


@pytest.mark.parametrize("lines", [100, 1500])
def test_after_kill_9_the_database_is_made_again_with_all_that_was_acknowledged(
    tmp_path: Path, lines: int
) -> None:
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", LIVE, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environ) as child:
        assert child.stdout is not None
        for _ in range(lines):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        child.stdout.read()
    journal, database = tmp_path / "events.jsonl", tmp_path / "run.duckdb"
    ensure(journal, database)
    assert ask(database, "SELECT seq >= ? FROM projected".replace("?", str(acknowledged))) == [
        (True,)
    ]
    assert agrees(journal, database)


def test_a_session_that_never_ended_died_with_its_runner(tmp_path: Path) -> None:
    told = [e for e in STORY if not isinstance(e.payload, events.SessionUpdated)]
    write_journal(tmp_path / "events.jsonl", told)
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert ask(
        tmp_path / "run.duckdb", "SELECT DISTINCT status, reason, error_kind FROM report_session"
    ) == [("errored", "infra.killed", "infra")]
    assert ask(tmp_path / "run.duckdb", "SELECT DISTINCT status FROM session") == [(None,)]


def test_children_count_into_their_session(tmp_path: Path) -> None:
    told = list(session_story(1, 2))
    for n, parent in ((2, 1), (3, 2)):
        for payload, session_id in session_story(n, 1):
            match payload:
                case events.SessionCreated(child) | events.SessionUpdated(child):
                    mine = evolve(child, parent_id=f"ses_{parent:04}", depth=n - 1)
                    told.append((events.SessionUpdated(mine), session_id))
                case _:
                    told.append((payload, session_id))
    write_journal(tmp_path / "events.jsonl", numbered(iter(told)))
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert ask(
        tmp_path / "run.duckdb",
        "SELECT session_id, children, model_calls, input_tokens, cost_usd, steps "
        "FROM session_total ORDER BY 1",
    ) == [
        ("ses_0001", 2, 4, 400, Decimal("1.00"), 4),
        ("ses_0002", 1, 2, 200, Decimal("0.50"), 2),
        ("ses_0003", 0, 1, 100, Decimal("0.25"), 1),
    ]
    assert ask(
        tmp_path / "run.duckdb",
        "SELECT session_id, steps, input_tokens, cost_usd FROM report_session",
    ) == [("ses_0001", 2, 400, Decimal("1.00"))]
    assert ask(
        tmp_path / "run.duckdb", "SELECT session_id, tool, pattern, times FROM report_denial"
    ) == [("ses_0001", "bash", "ls", 3)]


REPORT_COLUMNS = {
    "report_run": "run_id version argv ci_provider ci_url trigger shard_index shard_total "
    "started_at finished_at exit_code budget_usd lock_digest sandbox",
    "report_session": "run_id session_id item_key item_digest recipe recipe_file folder params "
    "matrix agent model repo ref base_sha status reason detail flaky attempts started_at "
    "finished_at wall_s working_s steps tool_calls input_tokens cache_read_tokens output_tokens "
    "cost_usd unpriced_calls model_calls error_kind answer denials attempt_id attempt_n "
    "patch_files patch_added patch_removed patch_bytes patch_sha256 patch_id patch_applies "
    "patch_refused patch_paths",
    "report_check": "run_id session_id item_key attempt_id name kind passed exit_code duration_s "
    "reason output",
    "report_denial": "run_id session_id item_key tool permission pattern rule source times",
    "report_message": "session_id attempt_id attempt_n message_id role model agent finish_reason "
    "error created_at",
    "report_part": "session_id message_id part_id idx type body",
    "report_model_call": "session_id attempt_id step try purpose provider request_model "
    "started_at ttft_s duration_s finish_reason error_kind error http_status input_tokens "
    "cache_read_tokens output_tokens cost_usd cost_source",
    "report_tool_call": "session_id attempt_id tool_call_id tool status error exit_code "
    "started_at duration_s output_bytes",
    "report_child": "run_id session_id parent_id depth item_key recipe agent model status reason "
    "detail attempts steps tool_calls input_tokens output_tokens cost_usd",
    "report_notice": "run_id session_id level text ts",
}


def test_the_views_have_the_columns_that_the_reports_read(tmp_path: Path) -> None:
    write_journal(tmp_path / "events.jsonl", STORY)
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    for view, wanted in REPORT_COLUMNS.items():
        described = ask(tmp_path / "run.duckdb", f"DESCRIBE {view}")
        assert [row[0] for row in described] == wanted.split()
        rows = ask(tmp_path / "run.duckdb", f"FROM {view}")
        assert rows or view == "report_child", view


def test_a_reports_checks_are_those_of_the_last_attempt_in_their_order(tmp_path: Path) -> None:
    def check(attempt: str, name: str) -> tuple[events.Payload, str | None]:
        result = records.CheckResult(
            session_id="ses_0001", attempt_id=attempt, name=name, kind="check", passed=False
        )
        return events.CheckFinished(result), "ses_0001"

    def attempt(n: int) -> tuple[events.Payload, str | None]:
        record = records.Attempt(
            attempt_id=f"att_{n}", session_id="ses_0001", n=n, started_at=TIME, answer=f"no {n}"
        )
        return events.SessionStarted(record), "ses_0001"

    told = [
        (events.SessionCreated(session(1)), "ses_0001"),
        attempt(1),
        check("att_1", "tests"),
        attempt(2),
        check("att_2", "tests"),
        check("att_2", "lint"),
        check("att_2", "lint"),
    ]
    write_journal(tmp_path / "events.jsonl", numbered(iter(told)))
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert ask(tmp_path / "run.duckdb", "SELECT attempt_id, name FROM report_check") == [
        ("att_2", "tests"),
        ("att_2", "lint"),
        ("att_2", "lint"),
    ]
    assert ask(
        tmp_path / "run.duckdb", "SELECT attempts, attempt_n, answer FROM report_session"
    ) == [(2, 2, "no 2")]


@pytest.mark.parametrize(
    "view",
    [
        "usage_daily",
        "usage_by_model",
        "usage_by_recipe",
        "token_mix",
        "cache_hit_rate",
        "cost_per_passed",
        "wasted_spend",
        "tool_errors",
        "denials",
        "latency",
        "session_time",
        "trend",
        "rate_limits",
        "flaky_items",
    ],
)
def test_a_question_of_people_has_an_answer(view: str, asked: Path) -> None:
    assert len(ask(asked, f"FROM {view}")) == 1


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which something of everything happened."""
    folder = tmp_path_factory.mktemp("asked")
    told = list(session_story(1, 2))
    call = next(p for p, _ in told if isinstance(p, events.ModelCallClosed)).call
    limited = evolve(call, model_call_id="mcl_limited", error_kind="rate_limit")
    lost = session(2, status="failed", reason="max_steps", item_key="fix/0001", started_at=TIME)
    told += [
        (events.RunStarted(run()), None),
        (events.ModelCallClosed(limited), "ses_0001"),
        (events.SessionCreated(lost), "ses_0002"),
    ]
    write_journal(folder / "events.jsonl", numbered(iter(told)))
    rebuild(folder / "events.jsonl", folder / "run.duckdb")
    return folder / "run.duckdb"


def test_a_part_keeps_its_body_as_json(tmp_path: Path) -> None:
    write_journal(tmp_path / "events.jsonl", numbered(session_story(1, 1)))
    rebuild(tmp_path / "events.jsonl", tmp_path / "run.duckdb")
    assert ask(
        tmp_path / "run.duckdb",
        "SELECT type, body->>'$.name', body->>'$.state.type', body->'$.state'->>'output' "
        "FROM report_part WHERE idx = 1",
    ) == [("tool_use", "bash", "completed", "a\nb")]
