"""SIGINT and SIGTERM: stopped, written down and reported within ten seconds; nothing survives."""

import fcntl
import json
import signal
from xml.etree import ElementTree as ET

import trio

from crash_cli import Stage, bash, eventually, says, write
from harness_batch.events import (
    ModelCallClosed,
    PartDelta,
    PartUpdated,
    SessionUpdated,
    ToolCallFinished,
)
from harness_batch.messages import Running, ToolUse
from wire import Call, Delivery, Reply, Say, serve


async def test_a_signal_stops_eight_sessions_under_a_tool_that_ignores_it(stage: Stage) -> None:
    recipe = stage.recipe(matrix={"n": [str(n) for n in range(10)]})
    stage.script(says("", write("new.txt", "new\n"), bash(stage.demons())), says("done"))
    before = stage.checkout()
    async with stage.running(*stage.in_out(recipe, "-j", "8")) as run:
        await stage.something_lives(8 * 4)
        began = trio.current_time()
        run.send_signal(signal.SIGTERM)
        assert await run.wait() == 143
        assert trio.current_time() - began < 10
    await stage.nothing_survives()
    assert stage.counts() == {"cancelled": 8, "skipped": 2}
    assert {reason for _, reason, _ in stage.statuses().values()} == {"interrupted", "not_admitted"}
    for key, (status, _, _) in stage.statuses().items():
        if status == "cancelled":
            assert "+new\n" in stage.patch(key)
    assert {p.call.status for p in stage.payloads(ToolCallFinished)} == {"completed", "interrupted"}
    assert stage.ask("SELECT DISTINCT error FROM message WHERE error IS NOT NULL") == [("aborted",)]
    reported(stage, 143)
    stage.database_is_the_journal()
    assert stage.checkout() == before
    assert stage.leftovers() == []


async def test_a_signal_in_the_middle_of_a_stream_keeps_what_was_said(stage: Stage) -> None:
    slow = Reply(Say("word " * 400), delivery=Delivery(chunk=40, pause=0.05))
    async with serve([slow]) as server:
        recipe = stage.recipe(model="mine/m")
        config = stage.config(server.openai_url, cost={"input": 1.0, "output": 2.0})
        async with stage.running(*stage.in_out(recipe, "--config", config)) as run:
            await stage.until(lambda event: isinstance(event.payload, PartDelta), count=3)
            run.send_signal(signal.SIGTERM)
            assert await run.wait() == 143
    (closed,) = stage.payloads(ModelCallClosed)
    assert closed.call.error_kind == "cancelled"
    assert float(closed.settled_usd) > 0, "nobody told what it cost: it counts at its ceiling"
    said = stage.ask("SELECT body FROM part WHERE type = 'text' ORDER BY part_id DESC")
    assert "word word" in said[0][0]
    assert stage.counts() == {"cancelled": 1}
    reported(stage, 143)


async def test_a_signal_during_a_check_leaves_the_patch(stage: Stage) -> None:
    recipe = stage.recipe(checks=[{"name": "slow", "run": stage.sleeper()}])
    stage.script(says("", write("new.txt", "new\n")), says("done"))
    async with stage.running(*stage.in_out(recipe)) as run:
        await stage.something_lives()
        run.send_signal(signal.SIGINT)
        assert await run.wait() == 130
    await stage.nothing_survives()
    assert stage.statuses() == {"work": ("cancelled", "interrupted", 1)}
    assert "+new\n" in stage.patch("work")


async def test_a_second_signal_ends_the_process_at_once_and_the_journal_replays(
    stage: Stage,
) -> None:
    # A work tree that takes long to take down keeps the first signal's tidying busy.
    recipe = stage.recipe(matrix={"n": ["1", "2", "3"]})
    stage.script(says("", bash(f"yes x | split -l 1 -a 5 & {stage.demons()}")), says("done"))
    async with stage.running(*stage.in_out(recipe)) as run:
        await stage.something_lives(3 * 4)
        run.send_signal(signal.SIGINT)
        run.send_signal(signal.SIGTERM)
        began = trio.current_time()
        assert await run.wait() in (130, 143)
        assert trio.current_time() - began < 2
    await stage.nothing_survives()
    assert stage.events()
    report = await stage.call("report", stage.out)
    assert report.code == 0, report.err
    stage.database_is_the_journal()
    again = await stage.call(*stage.in_out(recipe, "--resume", "last", "--only", "nothing"))
    assert again.code == 2


async def test_a_signal_while_reports_are_written_lets_them_be_written(stage: Stage) -> None:
    recipe = stage.recipe()
    stage.script(says("done"))
    history = stage.root / "history.duckdb"
    lock = history.with_name("history.duckdb.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        words = stage.in_out(recipe, "--db", history)
        async with stage.running(*words) as run:
            await stage.until(lambda event: isinstance(event.payload, SessionUpdated))
            run.send_signal(signal.SIGTERM)
            with trio.fail_after(10):
                code = await run.wait()
    assert code in (0, 143)
    reported(stage, code)
    assert stage.statuses()["work"][0] == "passed"


async def test_a_call_that_waits_for_its_model_is_stopped_too(stage: Stage) -> None:
    silent = Reply(Call("bash", {"command": "true"}), delivery=Delivery(silent_after=0))
    async with serve([silent]) as server:
        recipe = stage.recipe(model="mine/m")
        config = stage.config(server.openai_url)
        async with stage.running(*stage.in_out(recipe, "--config", config)) as run:
            await eventually(lambda: server.requests)
            run.send_signal(signal.SIGINT)
            with trio.fail_after(10):
                assert await run.wait() == 130
    assert stage.statuses() == {"work": ("cancelled", "interrupted", 1)}
    running = [
        p for p in stage.payloads(PartUpdated)
        if isinstance(p.part.body, ToolUse) and isinstance(p.part.body.state, Running)
    ]  # fmt: skip
    assert running == []


def reported(stage: Stage, code: int) -> None:
    """Every report is there and says the same."""
    assert json.loads((stage.out / "result.json").read_text())["exit_code"] == code
    assert json.loads((stage.out / "status.json").read_text())["exit_code"] == code
    cases = ET.parse(stage.out / "junit.xml").getroot().iter("testcase")
    names = {case.get("name") for case in cases}
    assert set(stage.statuses()) <= names
    assert (stage.out / "summary.md").stat().st_size > 0
