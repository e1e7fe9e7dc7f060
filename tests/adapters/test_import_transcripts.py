"""Transcripts of other agents in the history: the tokens of their sources, once, and no secrets."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foreign_transcripts import (
    CLAUDE_ID,
    CLAUDE_TOTALS,
    CODEX_TOTALS,
    GEMINI_TOTALS,
    OPENCODE_TOTALS,
    claude_rows,
    codex_rows,
    gemini_document,
    jsonl,
    opencode_database,
)
from harness_batch.app.importing import KEYS, Imported, import_transcripts
from harness_batch.config.door import load_config
from harness_batch.errors import FaultyInput
from harness_batch.store.asking import open_readonly_for_user_sql
from harness_batch.transcripts.door import read_transcripts

SECRET = "hunter2-is-no-password"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """One of each agent, under names that tell nothing."""
    (tmp_path / "c.txt").write_text(json.dumps(gemini_document(), indent=2))
    return {
        "claude-code": jsonl(tmp_path / "a.txt", claude_rows()),
        "codex": jsonl(tmp_path / "b.txt", codex_rows()),
        "gemini-cli": tmp_path / "c.txt",
        "opencode": opencode_database(tmp_path / "d.txt"),
    }


def bring(tmp_path: Path, *paths: Path, **environ: str) -> Sequence[Imported]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    config = load_config(repo=None, explicit=None, environ={"HOME": str(home)})
    return import_transcripts(paths, tmp_path / "history.duckdb", config, environ)


def ask(tmp_path: Path, sql: str) -> list[tuple[Any, ...]]:
    with open_readonly_for_user_sql(tmp_path / "history.duckdb") as history:
        return list(history.ask(sql).rows)


@pytest.mark.parametrize(
    ("agent", "totals", "calls"),
    [
        ("claude-code", CLAUDE_TOTALS, 3),
        ("codex", CODEX_TOTALS, 2),
        ("gemini-cli", GEMINI_TOTALS, 2),
        ("opencode", OPENCODE_TOTALS, 3),
    ],
)
def test_the_tokens_are_those_of_the_source(
    tmp_path: Path, files: dict[str, Path], agent: str, totals: dict[str, int], calls: int
) -> None:
    (told,) = bring(tmp_path, files[agent])
    assert told.agent == agent
    sums = ", ".join(f"sum({name})::BIGINT" for name in totals)
    assert ask(tmp_path, f"SELECT count(*), {sums} FROM model_call") == [(calls, *totals.values())]
    assert (told.usage.input, told.usage.output) == (
        totals["input_tokens"],
        totals["output_tokens"],
    )
    ((tokens,),) = ask(tmp_path, "SELECT input_tokens FROM report_session")
    assert tokens == totals["input_tokens"]


def test_sessions_are_comparable_by_agent_model_and_outcome(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    bring(tmp_path, *files.values())
    rows = ask(tmp_path, "SELECT recipe, model, status, depth FROM session ORDER BY recipe, depth")
    assert rows == [
        ("claude-code", "anthropic/claude-sonnet-4-5-20250929", "passed", 0),
        ("claude-code", "anthropic/claude-sonnet-4-5-20250929", "passed", 1),
        ("codex", "openai/gpt-5-codex", "passed", 0),
        ("gemini-cli", "google/gemini-2.5-pro", "passed", 0),
        ("opencode", "anthropic/claude-sonnet-4-5", "passed", 0),
        ("opencode", "anthropic/claude-sonnet-4-5", "passed", 1),
    ]
    tools = ask(tmp_path, "SELECT tool, status, input ->> '$.command' FROM tool_call ORDER BY tool")
    assert tools == [
        ("Bash", "completed", "ls"),
        ("bash", "completed", "ls"),
        ("read_file", "error", None),
        ("shell", "completed", '["bash","-lc","ls"]'),
    ]
    answers = ask(tmp_path, "SELECT DISTINCT answer FROM report_session")
    assert answers == [("Mended.",)]
    ((place,),) = ask(tmp_path, "SELECT DISTINCT base_sha FROM session WHERE base_sha IS NOT NULL")
    assert place == "9f2c1e0d"


def test_a_call_has_our_price_and_what_the_other_agent_reported(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    bring(tmp_path, files["opencode"])
    ((ours, theirs, source),) = ask(
        tmp_path,
        "SELECT sum(cost_usd), sum(provider_cost_usd)::DOUBLE, any_value(cost_source)"
        " FROM model_call",
    )
    assert theirs == pytest.approx(0.017)
    assert ours > 0
    assert source == "catalog"


def test_importing_again_changes_nothing_and_more_lines_replace(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    tables = ("run", "session", "attempt", "message", "part", "model_call", "tool_call")
    counted = " UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables)
    first = bring(tmp_path, *files.values())
    before = ask(tmp_path, counted)
    assert bring(tmp_path, *files.values(), files["codex"]) == first
    assert ask(tmp_path, counted) == before
    jsonl(files["claude-code"], claude_rows()[:-1])
    bring(tmp_path, files["claude-code"])
    after = ask(tmp_path, counted)
    assert after[0] == before[0]
    assert after[5] == (before[5][0] - 1,)


def test_a_child_names_its_parent(tmp_path: Path, files: dict[str, Path]) -> None:
    bring(tmp_path, files["claude-code"], files["opencode"])
    rows = ask(
        tmp_path,
        "SELECT count(*) FROM session AS c JOIN session AS p ON p.session_id = c.parent_id"
        " AND p.run_id = c.run_id WHERE c.depth = 1",
    )
    assert rows == [(2,)]


def test_a_subagents_own_file_is_a_session_of_its_own(tmp_path: Path) -> None:
    rows = [row for row in claude_rows() if row.get("isSidechain")]
    (told,) = bring(tmp_path, jsonl(tmp_path / "agent.jsonl", rows))
    assert told.sessions == 1
    assert ask(tmp_path, "SELECT item_key, depth FROM session") == [
        (f"claude-code/{CLAUDE_ID}/ad2d877", 0)
    ]


def test_secrets_do_not_reach_the_history(tmp_path: Path) -> None:
    keys = ("sk-ant-api03-" + "a1B2" * 10, "ghp_" + "x" * 36, "AKIAIOSFODNN7EXAMPLE", SECRET)
    rows = claude_rows()
    for key in keys:
        rows[2]["message"]["content"] += f" {key}"
        rows[5]["message"]["content"][0]["input"][key] = {"deep": [key]}
    bring(tmp_path, jsonl(tmp_path / "a.jsonl", rows), DATABASE_PASSWORD=SECRET)
    data = (tmp_path / "history.duckdb").read_bytes()
    told = str(ask(tmp_path, "SELECT body, input FROM part, tool_call"))
    for key in keys:
        assert key.encode() not in data
        assert key not in told
    assert "[masked]" in told


CUT = [
    ("a cut line", lambda text: text[: len(text) // 2].rstrip("}\n"), r":\d+:1: this is no JSON"),
    ("no transcript", lambda _: "hello\n", "none of the formats that are known"),
    ("other JSON", lambda _: '{"a": 1}\n', "none of the formats that are known"),
    ("nothing", lambda _: "", "none of the formats"),
    ("deep", lambda _: '{"type": "user", "uuid": ' + "[" * 99_999, "nested too deeply|no JSON"),
    ("a count that is none", lambda text: text.replace("28193", '"many"'), "is no count: 'many'"),
    ("a negative count", lambda text: text.replace("28193", "-5"), "is no count"),
    ("an endless count", lambda text: text.replace("28193", "9" * 400), "is no count|no JSON"),
    ("no time", lambda text: text.replace("2026-03-01T10", "yesterday"), "`timestamp` is no time"),
    ("no content", lambda text: text.replace('"content": [{', '"content": 7, "x": [{'), "no list"),
]


@pytest.mark.parametrize(("name", "change", "told"), CUT, ids=[name for name, *_ in CUT])
def test_a_faulty_file_is_told_and_nothing_is_imported(
    tmp_path: Path, files: dict[str, Path], name: str, change: Any, told: str
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(change(files["claude-code"].read_text()))
    with pytest.raises(FaultyInput, match=told) as caught:
        bring(tmp_path, files["codex"], bad)
    assert str(bad) in str(caught.value)
    assert not (tmp_path / "history.duckdb").exists()


def test_a_damaged_database_of_opencode_is_told(tmp_path: Path, files: dict[str, Path]) -> None:
    data = files["opencode"].read_bytes()
    (tmp_path / "cut.db").write_bytes(data[: len(data) // 2])
    (tmp_path / "other.db").write_bytes(data[:100] + b"\0" * 4000)
    for name in ("cut.db", "other.db"):
        with pytest.raises(FaultyInput, match=r"no database of opencode|no JSON|no message"):
            bring(tmp_path, tmp_path / name)
    assert files["opencode"].read_bytes() == data, "only read"


def test_totals_that_were_counted_anew_are_added(tmp_path: Path) -> None:
    rows = codex_rows()
    again = json.loads(json.dumps(rows[-1]))
    again["payload"]["info"]["total_token_usage"] |= {"input_tokens": 500, "output_tokens": 10}
    again["payload"]["info"]["last_token_usage"] |= {"input_tokens": 500, "output_tokens": 10}
    (told,) = bring(tmp_path, jsonl(tmp_path / "a.jsonl", [*rows, again]))
    assert (told.usage.input, told.usage.output) == (20500, 370)


def test_a_line_of_another_kind_does_not_hide_what_a_file_is(tmp_path: Path) -> None:
    kinds: tuple[dict[str, Any], ...] = ({"type": [], "uuid": "x"}, {"type": {}, "payload": {}})
    for odd in kinds:
        file = jsonl(tmp_path / "odd.jsonl", [odd, *claude_rows()])
        assert [one.agent for one in bring(tmp_path, file)] == ["claude-code"]


def test_what_is_nested_too_deeply_is_told_with_its_line(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "deep.jsonl", claude_rows())
    with file.open("a") as stream:
        stream.write('{"type": "user", "x": ' + '{"a":' * 400 + "1" + "}" * 400 + "}\n")
    with pytest.raises(FaultyInput, match=r"deep\.jsonl:\d+:1: it is nested too deeply"):
        bring(tmp_path, file)


def test_a_reply_of_many_parts_takes_no_square_of_time(tmp_path: Path) -> None:
    meta = {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "c"}}
    item = {"type": "reasoning", "summary": [{"text": "x"}]}
    part = {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": item}
    (one,) = read_transcripts(jsonl(tmp_path / "long.jsonl", [meta, *[part] * 20_000]))
    assert [len(said.bodies) for said in one.said] == [20_000]


def test_beginnings_of_keys_without_an_end_take_no_square_of_time() -> None:
    begin = "-----BEGIN PRIVATE KEY-----\n"
    assert KEYS.sub("", begin * 20_000) == begin * 20_000
    assert KEYS.sub("", f"{begin}x\n{begin}MII\n-----END PRIVATE KEY-----") == f"{begin}x\n"


def test_a_view_in_the_place_of_a_table_is_not_run(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "endless.db")) as connection:
        connection.executescript(
            "CREATE TABLE message (id); CREATE TABLE part (id);"
            "CREATE VIEW session AS WITH RECURSIVE n (id) AS"
            " (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n;"
        )
    with pytest.raises(FaultyInput, match="has not the tables of opencode"):
        bring(tmp_path, tmp_path / "endless.db")
