"""Reading a run: real database files, also broken ones."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import report_rows
import report_views
from harness_batch_reports.read import read_run, read_session
from harness_batch_reports.records import ReportError


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return report_views.write(tmp_path / "run.duckdb", report_rows.nightly())


def test_a_run_is_read_with_its_sessions_in_order_of_their_items(db: Path) -> None:
    report = read_run(db)
    assert report.run.run_id == report_rows.RUN
    assert report.run.argv == ("run", "recipes/fix-lint.yaml")
    assert report.run.started_at == datetime(2026, 3, 1, 4, 0, tzinfo=UTC)
    assert report.run.budget_usd == Decimal(5)
    items = [session.matrix["package"] for session in report.sessions]
    assert items == ["api", "cli", "core", "docs", "legacy", "plugins", "web", "zeta"]


def test_a_session_has_its_figures_checks_and_patch(db: Path) -> None:
    cli = read_run(db).sessions[1]
    assert (cli.cost_usd, cli.input_tokens, cli.attempts) == (Decimal("0.4211"), 182_400, 2)
    assert [(check.code, check.passed) for check in cli.checks] == [
        ("check:tests", False), ("expect:patch", True),
    ]  # fmt: skip
    assert cli.patch is not None
    assert cli.patch.paths == ("src/cli/main.py", "src/cli/help.py")
    assert cli.patch.sha256 == "ab" * 32


def test_what_never_ran_has_no_patch_no_cost_and_no_time(db: Path) -> None:
    legacy = read_run(db).sessions[4]
    assert (legacy.patch, legacy.cost_usd, legacy.wall_s, legacy.attempts) == (None, None, None, 0)


def test_files_of_the_last_attempt_are_found_beside_the_database(db: Path) -> None:
    attempt = db.parent / "items" / "fix-lint_package=cli" / "attempt-2"
    attempt.mkdir(parents=True)
    for name in ("change.patch", "answer.md", "notes.txt"):
        (attempt / name).write_text("x")
    report = read_run(db)
    assert report.sessions[1].files == (
        "items/fix-lint_package=cli/attempt-2/answer.md",
        "items/fix-lint_package=cli/attempt-2/change.patch",
    )
    assert report.folder == db.parent.resolve()


def test_of_several_runs_the_newest_is_read_unless_one_is_named(tmp_path: Path) -> None:
    older = report_rows.run(run_id="run_older", started_at="2026-01-01T00:00:00+00:00")
    tables = report_rows.nightly() | {"report_run": [older, report_rows.run()]}
    db = report_views.write(tmp_path / "history.duckdb", tables)
    assert read_run(db).run.run_id == report_rows.RUN
    assert read_run(db, "run_older").sessions == ()


def test_a_run_that_is_not_there_is_answered_with_those_that_are(db: Path) -> None:
    with pytest.raises(ReportError, match=f"no run run_x; it has {report_rows.RUN}"):
        read_run(db, "run_x")


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such database file"), ("hello", "is not a DuckDB database"),
     ("", "is not a DuckDB database")],
)  # fmt: skip
def test_a_file_that_is_no_database_is_said_in_one_line(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "run.duckdb"
    if content is not None:
        path.write_text(content * 10_000)
    with pytest.raises(ReportError, match=message) as caught:
        read_run(path)
    assert "\n" not in str(caught.value)


def test_a_folder_is_not_a_database(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no such database file"):
        read_run(tmp_path)


def test_a_database_of_something_else_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(ReportError, match="holds no run of this version"):
        read_run(path)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE report_run (run_id VARCHAR)")
    with pytest.raises(ReportError, match="holds no run of this version"):
        read_run(path)


def test_an_empty_database_holds_no_run_yet(tmp_path: Path) -> None:
    db = report_views.write(tmp_path / "run.duckdb", {})
    with pytest.raises(ReportError, match="holds no run yet"):
        read_run(db)


def test_a_value_of_another_type_is_an_error_not_a_guess(tmp_path: Path) -> None:
    db = report_views.write(tmp_path / "run.duckdb", {})
    with duckdb.connect(str(db)) as connection:
        connection.execute("ALTER TABLE report_run ALTER exit_code TYPE VARCHAR")
        connection.execute(
            "INSERT INTO report_run (run_id, version, exit_code) VALUES ('r', '1', '0')"
        )
    with pytest.raises(ReportError, match="of another version: run"):
        read_run(db)


def test_a_database_that_is_being_written_is_said_to_be(db: Path) -> None:
    with duckdb.connect(str(db)), pytest.raises(ReportError, match="is being written"):
        read_run(db)


def test_reading_changes_nothing(db: Path) -> None:
    before = db.read_bytes()
    read_run(db)
    assert db.read_bytes() == before
    assert [path.name for path in db.parent.iterdir()] == ["run.duckdb"]


def test_a_transcript_has_messages_in_order_with_their_parts(tmp_path: Path) -> None:
    db = report_views.write(tmp_path / "run.duckdb", report_rows.talk())
    talk = read_session(db, "ses_core")
    assert [message.role for message in talk.messages] == ["user", "assistant", "assistant"]
    assert [part.type for part in talk.messages[1].parts] == [
        "step_start", "reasoning", "text", "tool_use", "tool_use", "tool_use", "step_finish",
    ]  # fmt: skip
    assert talk.session is not None
    assert talk.session.checks[0].name == "tests"
    assert [call.http_status for call in talk.model_calls] == [529, None]


def test_a_child_session_has_a_transcript_without_a_line_in_the_report(tmp_path: Path) -> None:
    tables = report_rows.talk() | {"report_session": [], "report_check": []}
    db = report_views.write(tmp_path / "run.duckdb", tables)
    assert read_session(db, "ses_core").session is None


def test_a_session_that_is_not_there_is_an_error(db: Path) -> None:
    with pytest.raises(ReportError, match="holds no session ses_x"):
        read_session(db, "ses_x")
