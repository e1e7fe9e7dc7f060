"""One plan on four machines: cut the same everywhere, joined to the report of one run."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import duckdb
import pytest
import trio

from functional_cli import Bench

RECIPE = {
    "name": "many",
    "prompt": "Look at {{ part }} of {{ kind }}.",
    "model": "scripted/look.yaml",
    "matrix": {"part": [1, 2, 3, 4, 5], "kind": ["a", "b"]},
    "checks": [{"name": "odd", "run": "test {{ part }} != 4"}],
}
SCRIPT = """\
- {text: "I look.", calls: [{name: read, arguments: {file_path: NOTES.md}}]}
- {text: "Seen."}
"""
SHARDS = 4


class Fleet:
    """A project, and machines that each have a folder and a history of their own."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder)
        self.bench.set_up()
        (folder / "recipes" / "look.yaml").write_text(SCRIPT)
        (folder / "recipes" / "many.json").write_text(json.dumps(RECIPE))
        self.artifacts = folder / "artifacts"

    def call(self, *words: str) -> CompletedProcess[bytes]:
        return trio.run(self.bench.run, *words)

    def run(self, out: Path, *words: str) -> int:
        recipe = str(self.bench.folder / "recipes" / "many.json")
        quiet = ("--progress", "none", "--out", str(out), "--db", f"{out}.history")
        return self.call("run", recipe, *quiet, *words).returncode

    def merge(
        self, out: Path, *places: Path, history: Path | None = None
    ) -> CompletedProcess[bytes]:
        words = map(str, (out, *places))
        return self.call("merge", *words, "--db", str(history or f"{out}.history"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    fleet = Fleet(tmp_path_factory.mktemp("shards"))
    for index in range(1, SHARDS + 1):
        code = fleet.run(fleet.artifacts / f"run-{index}" / "run", "--shard", f"{index}/{SHARDS}")
        assert code in (0, 1)
    return fleet


def result(folder: Path) -> Any:
    return json.loads((folder / "result.json").read_bytes())


def told(folder: Path) -> list[Any]:
    """What a report says of sessions, without what two runs never share: ids and times."""
    sessions = result(folder)["sessions"]
    own = ("session_id", "started_at", "finished_at", "seconds", "working_seconds", "checks")
    return [
        {key: value for key, value in session.items() if key not in own}
        | {"checks": [(check["name"], check["passed"]) for check in session["checks"]]}
        for session in sessions
    ]


def cases(folder: Path) -> list[tuple[str | None, str | None, list[str]]]:
    root = ET.parse(folder / "junit.xml").getroot()
    return [
        (case.get("classname"), case.get("name"), [child.tag for child in case])
        for case in root.iter("testcase")
    ]


def test_four_shards_joined_give_the_report_of_one_run(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.run(tmp_path / "whole") == 1
    done = fleet.merge(tmp_path / "joined", fleet.artifacts)
    assert done.returncode == 0, done.stderr
    assert told(tmp_path / "joined") == told(tmp_path / "whole")
    assert cases(tmp_path / "joined") == cases(tmp_path / "whole")
    joined, whole = result(tmp_path / "joined"), result(tmp_path / "whole")
    for key in ("exit_code", "conclusion", "shard", "denials", "allowing"):
        assert joined[key] == whole[key]
    assert joined["totals"] | {"seconds": 0} == whole["totals"] | {"seconds": 0}
    assert [n["text"] for n in joined["notices"]] == [n["text"] for n in whole["notices"]]
    kept = {path.name for path in (tmp_path / "joined" / "items").iterdir()}
    assert kept == {path.name for path in (tmp_path / "whole" / "items").iterdir()}


def test_joining_again_gives_the_same_files_and_one_row_for_each_session(
    fleet: Fleet, tmp_path: Path
) -> None:
    history = tmp_path / "history.duckdb"
    files = ("events.jsonl", "junit.xml", "summary.md", "result.json", "lock.json")
    seen = []
    for _ in range(2):
        done = fleet.merge(tmp_path / "joined", fleet.artifacts, history=history)
        assert done.returncode == 0, done.stderr
        seen.append([(tmp_path / "joined" / name).read_bytes() for name in files])
    assert seen[0] == seen[1]
    with duckdb.connect(str(history), read_only=True) as database:
        runs = database.execute("SELECT count(*) FROM run").fetchall()
        sessions = database.execute("SELECT count(*), count(DISTINCT item_key) FROM session")
        assert (runs, sessions.fetchall()) == ([(1,)], [(10, 10)])


def test_a_joined_run_stands_for_its_shards_in_a_history_that_has_them(
    fleet: Fleet, tmp_path: Path
) -> None:
    history = tmp_path / "history.duckdb"
    recipe = str(fleet.bench.folder / "recipes" / "many.json")
    for index in (1, 2):
        out = tmp_path / "parts" / str(index)
        words = ("--db", str(history), "--shard", f"{index}/2", "--progress", "none")
        fleet.call("run", recipe, "--out", str(out), *words, "--only", "many/part=1,*")
    assert fleet.merge(tmp_path / "joined", tmp_path / "parts", history=history).returncode == 0
    with duckdb.connect(str(history), read_only=True) as database:
        assert database.execute("SELECT joined_runs IS NOT NULL FROM run").fetchall() == [(True,)]
        assert database.execute("SELECT count(*) FROM session").fetchall() == [(2,)]


def test_a_missing_shard_is_named_with_its_items_and_none_of_them_passes(
    fleet: Fleet, tmp_path: Path
) -> None:
    kept = [fleet.artifacts / f"run-{index}" for index in (1, 3, 4)]
    done = fleet.merge(tmp_path / "joined", *kept)
    assert done.returncode == 1
    assert b"shard 2/4 never began; its items: many/part=1,kind=b" in done.stderr
    joined = result(tmp_path / "joined")
    lost = [s for s in joined["sessions"] if s["reason"] == "shard_missing"]
    assert joined["totals"]["sessions"] == 10
    assert {s["status"] for s in lost} == {"errored"}
    assert len(lost) == 3
    assert (tmp_path / "joined" / "junit.xml").read_text().count('type="infra.shard_missing"') == 3


def test_a_shard_that_died_is_named_and_what_it_finished_counts(
    fleet: Fleet, tmp_path: Path
) -> None:
    shutil.copytree(fleet.artifacts, tmp_path / "artifacts")
    journal = tmp_path / "artifacts" / "run-1" / "run" / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    ended = [i for i, line in enumerate(lines) if b'"type":"session_finished"' in line]
    journal.write_bytes(b"".join(lines[: ended[0] + 1]) + lines[ended[0] + 1][:20])
    done = fleet.merge(tmp_path / "joined", tmp_path / "artifacts")
    assert done.returncode == 1
    assert b"shard 1/4 died: its journal has no end" in done.stderr
    statuses = [s["status"] for s in result(tmp_path / "joined")["sessions"]]
    assert len(statuses) == 10
    assert statuses.count("errored") == 2


def test_a_shard_that_began_and_left_no_journal_is_missing(fleet: Fleet, tmp_path: Path) -> None:
    shutil.copytree(fleet.artifacts, tmp_path / "artifacts")
    (tmp_path / "artifacts" / "run-3" / "run" / "events.jsonl").unlink()
    done = fleet.merge(tmp_path / "joined", tmp_path / "artifacts")
    assert done.returncode == 1
    assert b"died before its first event" in done.stderr
    assert b"shard 3/4 never began" in done.stderr


def test_runs_of_other_inputs_are_not_joined(fleet: Fleet, tmp_path: Path) -> None:
    fleet.run(tmp_path / "other", "--shard", "2/4", "--limit", "steps=3")
    done = fleet.merge(tmp_path / "joined", fleet.artifacts / "run-1", tmp_path / "other")
    assert done.returncode == 2
    assert b"ran different inputs" in done.stderr
    assert not (tmp_path / "joined").exists()


def test_of_two_tries_of_a_shard_the_newer_one_counts(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.run(tmp_path / "again" / "run-1", "--shard", "1/4") == 0
    done = fleet.merge(tmp_path / "joined", fleet.artifacts, tmp_path / "again")
    assert done.returncode == 0
    assert b"shard 1/4 is there twice" in done.stderr
    assert result(tmp_path / "joined")["totals"]["sessions"] == 10


def test_a_folder_without_a_run_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = fleet.merge(tmp_path / "joined", tmp_path / "empty")
    assert (done.returncode, b"there is no run in" in done.stderr) == (2, True)


def test_an_empty_shard_is_no_error(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.run(tmp_path / "run", "--shard", "12/12") == 0
    assert result(tmp_path / "run")["totals"]["sessions"] == 0


def test_the_money_is_divided_between_the_shards(fleet: Fleet, tmp_path: Path) -> None:
    fleet.run(tmp_path / "run", "--shard", "1/3", "--max-cost", "1.00")
    assert result(tmp_path / "run")["budget_usd"] == "0.333333333"
