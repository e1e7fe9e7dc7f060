"""Recorded sessions run again without a model: the same, or the difference is shown."""

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
import trio

from functional_children import CHILD_ID, Family, FamilyRun
from functional_children import carry_out as family_run
from functional_cli import KEY, MAIN_RECIPE, MAIN_SCRIPT, READ, Bench, Job, Ran, carry_out
from wire import Call, Delivery, Redacted, Refuse, Reply, Say, Seen, Think, Tries, Usage

ROOT = Path(__file__).parents[2]
BUNDLED = ROOT / "recipes" / "recordings" / "fix-failing-test.json"
SOON = {"retry-after-ms": "5"}
LIMITED = Refuse(429, {"error": {"type": "rate_limit_error", "message": "slow down"}}, SOON)
NO_CREDIT = Refuse(429, {"error": {"code": "insufficient_quota", "message": "no credit left"}})
BARE: dict[str, Any] = {**dict.fromkeys(MAIN_RECIPE), "prompt": "Look at the shop."}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LONG = {"file_path": "book.txt", "limit": 400}
BOOK = "\n".join(f"line {n:04}: {'lorem ipsum ' * 6}" for n in range(2000))

JOBS = [
    Job("plain", MAIN_SCRIPT, recipe={"prompt": "Mend the shop ({{ n }}).", "matrix": {"n": [7]}}),
    Job(
        "troubled",
        (
            Tries(LIMITED, LIMITED, Reply(Think("hm"), Redacted("b3BhcXVl"), Say("So."), READ)),
            Tries(
                Reply(Say("It broke here, in the middle."), delivery=Delivery(cut_after=900)),
                Reply(Call("write", '{"file_path": '), Call("nosuch", {})),
            ),
            Reply(Say("Done.")),
        ),
        recipe=BARE,
    ),
    Job("poor", (NO_CREDIT,), "openai-chat", recipe=BARE),
    Job(
        "listed",
        (Reply(Call("final_output", {"n": "x"})), Reply(Call("final_output", {"n": 3}))),
        "openai-chat",
        recipe={
            **BARE,
            "model": ["poor/poor", "listed/listed"],
            "response": {"json_schema": SCHEMA},
        },
    ),
    Job(
        "long",
        (
            *(
                Reply(Call("read", LONG | {"offset": 400 * n + 1}), usage=Usage(input=9000 * n))
                for n in range(1, 4)
            ),
            Reply(Say("Read.")),
        ),
        recipe=BARE,
        model={"context": 30_000, "output": 2000},
        small=lambda seen: Reply(Say("The book begins with lorem ipsum.")),
    ),
    Job(
        "retried",
        (
            Reply(Say("Nothing to do.")),
            Reply(Call("write", {"file_path": "shop/stock.py", "content": "STOCK = 1\n"})),
            Reply(Say("Written.")),
        ),
        recipe={
            **BARE,
            "permissions": {"edit": {"shop/**": "allow"}},
            "retry": {
                "max_retries": 1,
                "feedback": True,
                "checks": [{"type": "shell", "command": "test -e shop/stock.py"}],
            },
        },
    ),
    Job(
        "named",
        (
            Reply(Call("bash", {"command": "pwd; date; echo $TMPDIR"})),
            Reply(Say("Done.")),
        ),
        recipe={**BARE, "permissions": {"bash": {"*": "allow"}}},
    ),
    Job(
        "leak",
        (Reply(Call("bash", {"command": f"echo {KEY}"})), Reply(Say(f"It is {KEY}."))),
        recipe={**BARE, "permissions": {"bash": {"*": "allow"}}},
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carry_out(tmp_path_factory.mktemp("replay"), JOBS, "-j", "4", files={"book.txt": BOOK})


def called(bench: Bench, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    config = bench.folder / "config.json"
    return trio.run(partial(bench.run, *arguments, "--config", str(config)))


def bench_of(ran: Ran) -> Bench:
    return Bench(ran.project.parent)


KEYS = ["plain/n=7", "troubled", "poor", "listed", "long", "retried", "named", "leak"]


def test_every_session_goes_as_recorded_without_a_model(ran: Ran, tmp_path: Path) -> None:
    ended = called(bench_of(ran), "replay", *KEYS)

    assert ended.returncode == 0, ended.stdout.decode()
    said = ended.stdout.decode().splitlines()
    assert [line.partition(":")[0] for line in said] == KEYS
    assert all("as recorded" in line for line in said)
    replays = ran.project / ".harness" / "cache" / "replays"
    assert list(replays.iterdir()) == [], "nothing is to be looked at"


def calls_of(database: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(
            'SELECT purpose, error_kind, finish_reason, "try", input_tokens FROM model_call'
            " ORDER BY model_call_id"
        ).fetchall()


def test_requests_that_failed_are_requests_again_and_cost_nothing(ran: Ran, tmp_path: Path) -> None:
    key = "troubled"
    ended = called(bench_of(ran), "replay", key, "--out", str(tmp_path / "run"))

    assert ended.returncode == 0, ended.stdout.decode()
    then = [
        (c["purpose"], c["error_kind"], c["finish_reason"], c["try"], c["input_tokens"])
        for c in ran.session(key).calls
    ]
    assert sorted(calls_of(tmp_path / "run" / "run.duckdb"), key=str) == sorted(then, key=str)
    with duckdb.connect(str(tmp_path / "run" / "run.duckdb"), read_only=True) as connection:
        assert connection.execute(
            "SELECT DISTINCT provider, cost_usd FROM model_call WHERE error_kind IS NULL"
        ).fetchall() == [("replay", 0)]


def test_a_session_that_only_the_history_knows_can_be_replayed(ran: Ran, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "copy")
    shutil.copytree(ran.project.parent, bench.folder)
    shutil.rmtree(bench.project / ".harness" / "runs")
    session_id = ran.session("plain/n=7").row["session_id"]

    ended = called(bench, "replay", session_id, "--repo", ".")

    assert ended.returncode == 0, ended.stdout.decode() + ended.stderr.decode()


def test_a_recipe_is_tested_with_a_recording(ran: Ran) -> None:
    bench, place = bench_of(ran), ran.project.parent / "recipes" / "plain-recorded.json"
    saved = called(bench, "replay", "plain/n=7", "--save", str(place))
    assert saved.returncode == 0, saved.stderr.decode()
    text = place.read_text(encoding="utf-8")
    assert str(ran.project.parent) not in text, "no folder of this machine"
    assert json.loads(text)["recipe"] == "plain.json"

    recipe = str(ran.project.parent / "recipes" / "plain.json")
    run = called(bench, "run", recipe, "-m", "replay/plain-recorded.json", "--json")

    assert run.returncode == 0, run.stderr.decode()
    (session,) = json.loads(run.stdout)["sessions"]
    assert (session["status"], session["model"]) == ("passed", "replay/plain-recorded.json")


def test_other_answers_are_shown_and_can_be_accepted(ran: Ran, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "copy")
    shutil.copytree(ran.project.parent, bench.folder)
    prices = bench.project / "shop" / "prices.py"
    prices.write_text(prices.read_text().replace("of the little shop", "of the big shop"))
    subprocess.run(["git", "commit", "-qam", "Grown", "--author", "A <a@b.invalid>"],
                   cwd=bench.project, check=True,
                   env={**bench.environment(), "GIT_COMMITTER_NAME": "A",
                        "GIT_COMMITTER_EMAIL": "a@b.invalid"})  # fmt: skip
    words = ("replay", ran.session("plain/n=7").row["session_id"], "--repo", ".", "--ref", "HEAD")

    shown = called(bench, *words)
    accepted = called(bench, *words, "--update")
    after = called(bench, *words[:4])

    assert shown.returncode == 1
    said = shown.stdout.decode()
    assert "--- call 1: read" in said
    assert "of the little shop" in said
    assert "of the big shop" in said
    assert "--update accepts it" in said
    assert accepted.returncode == 0, accepted.stdout.decode() + accepted.stderr.decode()
    assert after.returncode == 0, after.stdout.decode() + after.stderr.decode()


def test_a_rule_that_is_gone_is_a_difference(ran: Ran, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "copy")
    shutil.copytree(ran.project.parent, bench.folder)
    recipe = bench.folder / "recipes" / "plain.json"
    document = json.loads(recipe.read_text())
    document["permissions"] = {"edit": "deny"}
    recipe.write_text(json.dumps(document))

    ended = called(bench, "replay", "plain/n=7", "--recipe", str(recipe), "--repo", ".")

    assert ended.returncode == 1
    assert "+bash: failed" in ended.stdout.decode()
    assert "--- outcome" in ended.stdout.decode()


def told_to_go_on(seen: Seen) -> Reply:
    body = json.dumps(seen.json["messages"])
    ids = CHILD_ID.findall(body)
    match seen.step:
        case 0:
            asked = [
                Call(
                    "task", {"description": "d", "prompt": f"Find {n}.", "agent": "helper", **more}
                )
                for n, more in enumerate([{}, {"background": True}, {"background": True}])
            ]
            return Reply(Say("I ask."), *asked)
        case 1:
            more = {"agent": "helper", "session": ids[0]}
            return Reply(Call("task", {"description": "d", "prompt": "And now?", **more}))
        case _:
            return Reply(Say("All found."))


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> FamilyRun:
    helper = {
        "mode": "subagent",
        "description": "Looks.",
        "model": "wire/helper",
        "prompt": "Look.",
    }
    return family_run(
        tmp_path_factory.mktemp("family"),
        Family(
            models={
                "lead": told_to_go_on,
                "helper": lambda seen: (
                    Reply(Say(f"Found: {seen.json['messages'][-1]['content']}"[:80]))
                    if seen.step
                    else Reply(READ)
                ),
            },
            agents={"helper": helper},
            recipe={"permissions": {"task": {"helper": "allow"}}},
        ),
    )


def test_child_sessions_are_played_too_whatever_their_ids_are_now(family: FamilyRun) -> None:
    assert family.exit_code == 0, family.stderr
    assert len(family.children) == 3
    ended = called(family.bench, "replay", family.top["session_id"])

    assert ended.returncode == 0, ended.stdout.decode() + ended.stderr.decode()


def test_the_bundled_recording_tests_the_bundled_recipe(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()

    def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "harness_batch", *arguments],
            cwd=cwd,
            env=bench.environment(),
            capture_output=True,
            check=False,
        )

    assert call("init", "--sample", "sample", cwd=tmp_path).returncode == 0
    ended = call("replay", str(BUNDLED), "--repo", "sample", cwd=tmp_path)

    assert ended.returncode == 0, ended.stdout.decode() + ended.stderr.decode()
    assert b"as recorded (passed)" in ended.stdout


def test_secrets_stay_masked_in_recordings(ran: Ran, tmp_path: Path) -> None:
    session_id = ran.session("leak").row["session_id"]
    saved = called(bench_of(ran), "replay", session_id, "--save", str(tmp_path / "leak.json"))

    assert saved.returncode == 0, saved.stderr.decode()
    text = (tmp_path / "leak.json").read_text(encoding="utf-8")
    assert KEY not in text
    assert "echo [masked]" in text


def spoilt(**keys: Any) -> str:
    document = json.loads(BUNDLED.read_text(encoding="utf-8"))
    return json.dumps({**document, "base": None, **keys})


HOSTILE: dict[str, tuple[str, str]] = {
    "another-file": ('{"a": 1}', "is no recording"),
    "unknown-base": (spoilt(base="0" * 40), "a shallow clone may lack it"),
    "odd-matrix": (spoilt(matrix={"x": 1}), "matrix has changed"),
    "odd-params": (spoilt(params={"hint": {"a": [1]}}), "hint"),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("hostile"))
    bench.set_up()
    return bench


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_good_recording_is_told_in_a_message(sample: Bench, name: str) -> None:
    content, said = HOSTILE[name]
    file = sample.folder / f"{name}.json"
    file.write_text(content, encoding="utf-8")

    ended = trio.run(sample.run, "replay", str(file))

    told = ended.stderr.decode()
    assert ended.returncode == 2, told
    assert said in told
    assert "Traceback" not in told
    assert len(told) < 5000
