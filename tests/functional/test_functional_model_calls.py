"""A row for every request: of each purpose, whatever became of it; never one without a request."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
import trio
from attrs import Factory, define, frozen

from functional_cli import KEY, Bench, Job, Json, Ran, carry_out
from wire import Call, Delivery, Raw, Refuse, Reply, Say, Seen, Usage, serve
from wire.script import Answer

PURPOSES = ("step", "compaction")
BOOK = "\n".join(f"line {n:04}: {'lorem ipsum ' * 6}" for n in range(300))
RECIPE: Json = {
    "prompt": "Read book.txt.",
    "permissions": {"read": "allow"},
    "checks": None,
    "expect": None,
}
PRICES = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
FULL = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
        "message": "prompt is too long: 40000 tokens > 32000 maximum",
    },
}
SOON = {"retry-after-ms": "5"}
LONG = Say("I have so much to say about this book that it takes a while. " * 20)
WELL = Reply(Say("That is all."), usage=Usage(input=1000, output=100))
"""1,000*3 + 100*15 = 4,500 millionths: 0.0045 USD."""


def refused(status: int, kind: str) -> Refuse:
    return Refuse(status, {"type": "error", "error": {"type": kind, "message": kind}}, SOON)


@frozen
class Fate:
    """What the requests of one purpose meet, and the rows that must come of them."""

    answers: tuple[Answer, ...]
    kinds: tuple[str | None, ...]
    """`error_kind` of each row, in order."""
    provider: Mapping[str, Any] = Factory(dict)
    limits: Mapping[str, Any] = Factory(dict)
    free: bool = False
    """What failed cost nothing for certain: nothing of it is reported as unpriced."""


FATES = {
    "fine": Fate((WELL,), (None,)),
    "limited-once": Fate((refused(429, "rate_limit_error"), WELL), ("rate_limit", None), free=True),
    "overloaded-twice": Fate(
        (refused(529, "overloaded_error"), refused(500, "api_error"), WELL),
        ("unavailable", "unavailable", None),
        free=True,
    ),
    "broken-stream": Fate(
        (Reply(LONG, delivery=Delivery(cut_after=900)), WELL), ("network", None)
    ),
    "error-in-the-stream": Fate(
        (Reply(LONG, delivery=Delivery(error_after=(4, {"type": "overloaded_error"}))), WELL),
        ("unavailable", None),
    ),
    "closed-before-an-answer": Fate((Raw(b""), WELL), ("network", None)),
    "silent": Fate(
        (Raw(hang=True), WELL), ("timeout", None), provider={"first_byte_timeout": 0.6}
    ),
    "wrong-content": Fate((Refuse(200, "<p>login</p>", {}, "text/html"),), ("protocol",)),
    "no-usage": Fate((Reply(Say("That is all."), delivery=Delivery(usage=False)),), (None,)),
    "refused-for-good": Fate((refused(403, "permission_error"),), ("auth",), free=True),
    "stopped": Fate((Raw(hang=True),), ("cancelled",), limits={"seconds": 3}),
}  # fmt: skip


@define
class InTurn:
    """A model that gives these answers, and then the last one for ever."""

    answers: tuple[Answer, ...]
    asked: int = 0

    def __call__(self, seen: Seen) -> Answer:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


@define
class Reader:
    """Reads two pages; then its window is full until the past is summarised."""

    asked: int = 0

    def __call__(self, seen: Seen) -> Answer:
        said = json.dumps(seen.json["messages"])
        if "is summarised here" in said:
            return WELL
        self.asked += 1
        if self.asked > 2:
            return Refuse(400, FULL)
        page = {"file_path": "book.txt", "offset": 1 + 40 * self.asked, "limit": 40}
        return Reply(Say(f"Page {self.asked}."), Call("read", page))


def job(purpose: str, name: str, fate: Fate) -> Job:
    recipe = RECIPE | {"limits": dict(fate.limits) or None}
    small = InTurn(fate.answers) if purpose == "compaction" else None
    script: Any = Reader() if small else InTurn(fate.answers)
    return Job(
        f"{purpose}.{name}",
        script,
        "anthropic",
        recipe,
        fate.provider,
        model={"cost": PRICES},
        small=small,
        small_model={"cost": PRICES},
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [job(purpose, name, fate) for purpose in PURPOSES for name, fate in FATES.items()]
    return carry_out(tmp_path_factory.mktemp("calls"), jobs, "-j", "8", files={"book.txt": BOOK})


def test_each_request_that_the_server_saw_is_one_row(ran: Ran) -> None:
    seen = Counter(request.model for request in ran.requests)
    rows = Counter(str(row["request_model"]) for row in ran.tables["model_call"])
    assert rows == seen
    assert {row["purpose"] for row in ran.tables["model_call"]} == set(PURPOSES)


def test_each_row_was_opened_before_and_closed_after(ran: Ran) -> None:
    opened: dict[str, int] = {}
    closed: dict[str, int] = {}
    for event in ran.events:
        if event["type"] in ("model_call_opened", "model_call_closed"):
            into = opened if event["type"] == "model_call_opened" else closed
            key = event["call"]["model_call_id"]
            assert key not in into
            into[key] = event["seq"]
    ids = {row["model_call_id"] for row in ran.tables["model_call"]}
    assert set(opened) == set(closed) == ids
    assert all(opened[key] < closed[key] for key in ids)
    assert all(row["duration_s"] is not None for row in ran.tables["model_call"])


@pytest.mark.parametrize("name", FATES)
@pytest.mark.parametrize("purpose", PURPOSES)
def test_the_rows_tell_what_became_of_each_request(ran: Ran, purpose: str, name: str) -> None:
    fate = FATES[name]
    session = ran.session(f"{purpose}.{name}")
    rows = [row for row in session.calls if row["purpose"] == purpose]
    if purpose == "step":
        rows = rows[: len(fate.kinds)]
    assert [row["error_kind"] for row in rows] == list(fate.kinds)
    assert [row["try"] for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        whole = row["error_kind"] is None and name != "no-usage"
        assert (row["cost_usd"] is not None) == whole
        assert (row["cost_source"] == "config") == whole
        assert (row["price_version"] is not None) == whole
        if whole:
            assert row["cost_usd"] == session.calls[-1]["cost_usd"]
        assert row["response_id"] is None or row["http_status"] == 200


@pytest.mark.parametrize("name", FATES)
@pytest.mark.parametrize("purpose", PURPOSES)
def test_what_nobody_can_price_is_told_as_unpriced(ran: Ran, purpose: str, name: str) -> None:
    fate = FATES[name]
    database = ran.folder / "run.duckdb"
    session_id = ran.session(f"{purpose}.{name}").row["session_id"]
    with duckdb.connect(str(database), read_only=True) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM unpriced_call WHERE session_id = ? AND purpose = ?",
            [session_id, purpose],
        ).fetchall()
    doubtful = {"broken-stream", "error-in-the-stream", "no-usage", "stopped"}
    if fate.free or name == "fine":
        assert count == (0,)
    elif name in doubtful:
        assert count == (1,)


@pytest.mark.parametrize("purpose", PURPOSES)
async def test_a_killed_runner_leaves_the_row_of_its_last_request_open(
    tmp_path: Path, purpose: str
) -> None:
    asked = trio.Event()

    def hang(seen: Seen) -> Answer:
        asked.set()
        return Raw(hang=True)

    kill = Job("kill", Reader() if purpose == "compaction" else hang, "anthropic", RECIPE,
               model={"cost": PRICES}, small=hang, small_model={"cost": PRICES})  # fmt: skip
    bench = Bench(tmp_path)
    bench.set_up({"book.txt": BOOK})
    scripts: dict[str, Any] = {"kill": kill.script, "kill-small": hang}
    async with serve(scripts, key=KEY) as server:
        recipe, provider = bench.write_job(kill, server.anthropic_url)
        config = tmp_path / "config.json"
        config.write_text(json.dumps({"provider": {"kill": provider}}), encoding="utf-8")
        command = ("run", str(recipe), "--config", str(config), "--out", "out")
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "harness_batch", *command],
            cwd=bench.project,
            env=bench.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            with trio.fail_after(60):
                await asked.wait()
        finally:
            process.kill()
            await process.wait()
        done = await bench.run("report", "out", "--format", "json")
    assert done.returncode == 0, done.stderr
    with duckdb.connect(str(bench.project / "out" / "run.duckdb"), read_only=True) as connection:
        rows = connection.execute(
            "SELECT purpose, duration_s, error_kind, cost_usd FROM model_call "
            "ORDER BY model_call_id DESC"
        ).fetchall()
    assert rows[0] == (purpose, None, None, None)
    assert all(duration is not None for _, duration, *_ in rows[1:])
