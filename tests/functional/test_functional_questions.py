"""`stats`, `query`, `compare`, `export` and `import` as processes on real runs."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from foreign_transcripts import claude_rows, jsonl
from harness_batch.store.questions import all_questions
from small_history import TWO_NIGHTS, build


def harness_batch(
    cwd: Path, *words: str, code: int | None = 0, environ: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **environ},
    )  # fmt: skip
    assert code in (None, done.returncode), done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the history of two nights."""
    home = tmp_path_factory.mktemp("questions")
    (home / ".harness").mkdir()
    build(home / ".harness/history.duckdb", TWO_NIGHTS)
    return home


def on_a_terminal(cwd: Path, *words: str, **environ: str) -> str:
    """What a terminal of 80 columns shows."""
    master, slave = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    child = subprocess.Popen(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, stdin=slave, stdout=slave, stderr=slave, close_fds=True,
        env={**inherited, "TERM": "xterm-256color", "COLUMNS": "80", **environ},
    )  # fmt: skip
    os.close(slave)
    pieces = []
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end is gone
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    assert child.wait(30) == 0
    return b"".join(pieces).decode().replace("\r\n", "\n")


# ---- stats


def test_the_questions_are_listed(home: Path) -> None:
    listed = harness_batch(home, "stats", "--list", "--format", "csv").stdout
    assert [row[0] for row in csv.reader(io.StringIO(listed))][1:] == [
        question.name for question in all_questions()
    ]
    assert harness_batch(home, "stats").stdout.startswith("name ")


def test_an_answer_comes_as_table_csv_json_and_markdown(home: Path) -> None:
    def said(form: str) -> str:
        return harness_batch(home, "stats", "usage_by_recipe", "--format", form).stdout

    assert json.loads(said("json"))[0]["cost_usd"] == "0.065000000"
    assert said("csv").splitlines()[1].startswith("fix,4,2,1,1,7,7900,400,0.065")
    assert said("markdown").splitlines()[2].startswith("| `fix` | `4` |")
    assert harness_batch(home, "stats", "usage_by_recipe").stdout == said("table")


def test_a_terminal_gets_a_chart_in_colour_unless_it_must_not(home: Path) -> None:
    coloured = on_a_terminal(home, "stats", "usage_by_model")
    plain = on_a_terminal(home, "stats", "usage_by_model", NO_COLOR="1")
    assert "\x1b[36" in coloured
    assert "\x1b[36" not in plain
    for text in (coloured, plain):
        assert "█" in text
        assert "unpriced" in text
        assert "What did each model take" in text
    rows = [line for line in plain.splitlines() if "big" in line]
    assert "$0.0650" in rows[0]


def test_a_chart_without_a_terminal_is_plain(home: Path) -> None:
    text = harness_batch(home, "stats", "cost_per_passed", "--format", "chart").stdout
    assert "\x1b" not in text
    assert "█" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_filters_narrow_the_answer(home: Path) -> None:
    words = ("stats", "usage_by_recipe", "--format", "csv", "--since", "2026-03-02")
    assert harness_batch(home, *words).stdout.splitlines()[1].startswith("fix,2,1,0,1,")
    assert len(harness_batch(home, *words, "--recipe", "other").stdout.splitlines()) == 1
    small = harness_batch(home, "stats", "usage_by_model", "--model", "p/s*", "--format", "csv")
    assert small.stdout.splitlines()[1].startswith("p,small,1,")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("usage_dayly",), "did you mean `usage_daily`?"),
        (("usage_daily", "--since", "yesterday"), "--since yesterday: write how long ago"),
        (("usage_daily", "--db", "none.duckdb"), "there is no database"),
        (("usage_daily", "--run", "last"), "there is no run"),
        (("usage_daily", "--run", "last", "--db", "x"), "choose one"),
    ],
    ids=str,
)
def test_a_mistake_is_told(home: Path, words: tuple[str, ...], told: str) -> None:
    assert told in harness_batch(home, "stats", *words, code=2).stderr


# ---- query


def test_a_query_that_takes_too_long_is_stopped(home: Path) -> None:
    million = "range(1000000)"
    sql = f"SELECT count(*) FROM {million} AS a (i), {million} AS b (j) WHERE hash(i + j) = 3"
    done = harness_batch(home, "query", sql, "--max-time", "200ms", code=2)
    assert "it took longer than it may" in done.stderr


def test_a_huge_answer_is_written_as_it_comes_and_a_reader_may_leave(home: Path) -> None:
    """A hundred million rows never fit: the first lines come at once, then the pipe breaks."""
    sql = "SELECT i, 'x' AS x FROM range(100000000) AS t (i)"
    for form in ("csv", "json"):
        with subprocess.Popen(
            [sys.executable, "-m", "harness_batch", "query", sql, "--format", form],
            cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            assert child.stdout is not None
            assert child.stderr is not None
            assert child.stdout.readline()
            child.stdout.close()
            assert child.wait(60) == 0
            assert child.stderr.read() == ""


def test_bytes_that_are_no_text_are_told(home: Path) -> None:
    assert "no UTF-8" in harness_batch(home, "query", "SELECT 1 -- \udcff", code=2).stderr


def test_odd_values_come_through_every_form(home: Path) -> None:
    sql = (
        "SELECT 'a,\"b\"' || chr(10) || 'c' AS text, '\\x00\\xFF'::BLOB AS raw, NULL AS nothing,"
        " chr(27) || '[31mred' AS red, 1 AS n, 2 AS n, '::error::no' AS command"
    )
    texts = {
        form: harness_batch(home, "query", sql, "--format", form).stdout
        for form in ("csv", "table", "json", "markdown")
    }
    assert all("\x1b" not in text for text in texts.values())
    ((text, raw, nothing, *_),) = list(csv.reader(io.StringIO(texts["csv"])))[1:]
    assert (text, raw, nothing) == ('a,"b"\nc', "00ff", "")
    (row,) = json.loads(texts["json"])
    assert row["text"] == 'a,"b"\nc'
    assert (row["n"], row["n_1"], row["red"]) == (1, 2, "\x1b[31mred")
    assert not any("::error::" in texts[form] for form in ("csv", "table", "markdown"))


def test_an_answer_goes_to_a_file_whole_or_not_at_all(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "answer.parquet"
    words = ("query", "SELECT model_call_id, cost_usd FROM model_call ORDER BY 1")
    harness_batch(home, *words, "--format", "parquet", "--out", str(out))
    rows = duckdb.execute(f"FROM '{out}'").fetchall()
    assert (len(rows), rows[0][0]) == (7, "m1")
    before = out.read_bytes()
    for sql in ("SELECT * FROM read_text('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/x'"):
        refused = ("query", "--format", "parquet", "--out", str(out), "--", sql)
        assert harness_batch(home, *refused, code=2).stdout == ""
    assert out.read_bytes() == before
    assert [path.name for path in out.parent.iterdir()] == ["answer.parquet"]
    harness_batch(home, "query", "FROM run", "--format", "csv", "--out", str(tmp_path / "a.csv"))
    assert (tmp_path / "a.csv").read_text().startswith("run_id,version,")


def test_parquet_is_not_for_a_terminal(home: Path) -> None:
    done = harness_batch(home, "query", "FROM run", "--format", "parquet", code=2)
    assert "--format parquet needs --out FILE" in done.stderr


# ---- export, compare, import


def test_exported_sets_are_asked_like_the_history(home: Path, tmp_path: Path) -> None:
    said = harness_batch(home, "export", "--parquet", str(tmp_path / "sets")).stdout
    assert said.split() == [str(tmp_path / "sets/r1"), str(tmp_path / "sets/r2")]
    sets = ("--db", str(tmp_path / "sets"), "--format", "csv")
    assert "p,small,1,0,400" in harness_batch(home, "query", "FROM usage_by_model", *sets).stdout
    assert "errored,infra.killed" in harness_batch(home, "stats", "wasted_spend", *sets).stdout
    glob = f"{tmp_path}/sets/*/model_call.parquet"
    assert duckdb.execute(f"SELECT count(*) FROM '{glob}'").fetchall() == [(7,)]
    assert "say where to" in harness_batch(home, "export", code=2).stderr


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good run of the sample, then one that was cut short by a limit."""
    home = tmp_path_factory.mktemp("ran")
    harness_batch(home, "init", "--sample", "sample")
    run = ("run", "fix-failing-test", "--repo", "sample", "--progress", "none")
    harness_batch(home, *run, "--out", "good")
    harness_batch(home, *run, "--limit", "steps=2", code=1)
    return home


def test_a_gate_answers_with_its_exit_code(ran: Path) -> None:
    gate = ("--no-new-failures", "--max-cost-increase", "20%")
    refused = harness_batch(ran, "compare", "last", "good", *gate, code=1).stdout
    assert "new failure       fix-failing-test  passed -> failed (max_steps)" in refused
    assert refused.endswith("refused: new failures: fix-failing-test\n")
    words = ("compare", "good", "last", "--format", "json")
    page: Any = json.loads(harness_batch(ran, *words, *gate).stdout)
    assert page["items"][0]["change"] == "fixed"
    for share in ("2", "1e999999999%"):
        done = harness_batch(ran, "compare", "good", "last", "--max-cost-increase", share, code=2)
        assert "write a share such as 20%" in done.stderr


def test_runs_that_only_the_history_knows_are_compared(ran: Path, tmp_path: Path) -> None:
    db = str(ran / ".harness/history.duckdb")
    ids = harness_batch(ran, "query", "SELECT run_id FROM run ORDER BY 1", "--format", "csv").stdout
    first, second = ids.split()[1:]
    text = harness_batch(tmp_path, "compare", second, first, "--db", db).stdout
    assert "new failure       fix-failing-test" in text
    done = harness_batch(tmp_path, "compare", second, "run_none", "--db", db, code=2)
    assert "there is no run 'run_none'" in done.stderr


def test_an_import_is_told_and_answers_questions(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "session.jsonl", claude_rows())
    said = harness_batch(tmp_path, "import", str(file)).stdout
    assert "claude-code  2 sessions  58.5k in, 232 out" in said
    rows = harness_batch(tmp_path, "stats", "usage_by_recipe", "--format", "json").stdout
    assert json.loads(rows)[0]["input_tokens"] == 58_473
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"type": "user"')
    assert (
        f"{bad}:1:1: this is no JSON" in harness_batch(tmp_path, "import", str(bad), code=2).stderr
    )


def test_a_db_that_is_no_database_gets_no_lock_beside_it(ran: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes, not a database\n")
    run = ("run", "fix-failing-test", "--repo", "sample", "--progress", "none", "--db", str(notes))
    assert "it is no DuckDB database" in harness_batch(ran, *run).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert notes.read_text() == "my notes, not a database\n"


def test_a_matrix_asks_the_history(home: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    recipe = tmp_path / "again.yaml"
    sql = "SELECT item_key AS item, cost_usd::DECIMAL(9, 2) AS usd FROM session WHERE depth = 0"
    recipe.write_text(
        "model: scripted/none.yaml\nprompt: Again {{ item }} {{ usd }}\n"
        f"matrix: {{include: {{query: \"{sql} AND status = 'failed'\"}}}}\n"
    )
    (tmp_path / "none.yaml").write_text("- {text: Done.}\n")
    db = {"HARNESS_BATCH_DB": str(home / ".harness/history.duckdb")}
    plan = json.loads(harness_batch(tmp_path, "plan", "again.yaml", "--json", environ=db).stdout)
    assert [item["matrix"] for item in plan["items"]] == [{"item": "fix/y", "usd": 0.02}]
    empty = harness_batch(tmp_path, "plan", "again.yaml", "--json")
    assert json.loads(empty.stdout)["items"] == []
    recipe.write_text(recipe.read_text().replace("SELECT", "NONSENSE"))
    done = harness_batch(tmp_path, "plan", "again.yaml", code=2, environ=db)
    assert "again.yaml:3:" in done.stderr
    assert "include: query: history.duckdb refuses the query" in done.stderr
