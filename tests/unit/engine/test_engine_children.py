"""The engine's children on fake sessions and a mock clock: stops, limits, depth, counts."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from fakes import MemoryLog
from fakes_children import FakeChildSessions, children_of
from harness_batch.config.record import ModelInfo, Prices
from harness_batch.engine.budget import Budget
from harness_batch.engine.endings import Interrupted, Stopped
from harness_batch.engine.spend import Allowance, Busy, Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.verdict import judge
from harness_batch.errors import StorageError
from harness_batch.events import JobUpdated
from harness_batch.limits import MAX_CHILD_DEPTH, MAX_RUNNING_JOBS, Limits
from harness_batch.messages import Subtask, TokenUsage
from harness_batch.tools.delegates import Errand, NotStarted, Report


@pytest.fixture
def autojump_clock() -> MockClock:
    return MockClock(autojump_threshold=0)


def errand(prompt: str, **more: Any) -> Errand:
    return Errand(description="a thing", prompt=prompt, agent="helper", **more)


async def test_tools_are_offered_down_to_the_depth_limit_only(tmp_path: Path) -> None:
    for depth in range(MAX_CHILD_DEPTH):
        children = children_of(tmp_path, FakeChildSessions(), depth=depth)
        assert [tool.name for tool in children.tools()] == ["task"]
    deepest = children_of(tmp_path, FakeChildSessions(), depth=MAX_CHILD_DEPTH)
    assert deepest.tools() == ()


async def test_a_child_that_is_started_is_noted_in_the_reply(tmp_path: Path) -> None:
    children = children_of(tmp_path, FakeChildSessions())
    noted: list[Subtask] = []
    children.note = noted.append

    async with children.at_work():
        report = await children.send(errand("answer x"))
    assert isinstance(report, Report)
    assert noted == [
        Subtask(child_session=report.session_id, agent="helper", description="a thing")
    ]


async def test_a_stopped_parent_stops_its_child_which_writes_down_its_end(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    sessions, stop = FakeChildSessions(), StopSignal()
    children = children_of(tmp_path, sessions, stop=stop)
    stop.begin(Limits(seconds=5))

    with stop.scope() as scope:
        async with children.at_work():
            await children.send(errand("wait 100"))
    assert scope.cancelled_caught
    assert sessions.events == ["begun ses_0", "ended ses_0 cancelled parent_stopped"]


async def test_a_signal_is_handed_down_by_its_name(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    sessions, stop = FakeChildSessions(), StopSignal()
    log = MemoryLog()
    children = children_of(tmp_path, sessions, stop=stop, log=log)
    stop.begin(Limits())

    async def interrupt() -> None:
        await trio.sleep(1)
        stop.ask("interrupted")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(interrupt)
        with stop.scope():
            async with children.at_work():
                await children.send(errand("wait 100", background=True))
                await children.send(errand("wait 100"))
    assert sorted(sessions.events[2:]) == [
        "ended ses_0 cancelled interrupted",
        "ended ses_1 cancelled interrupted",
    ]
    assert [job.job.state for job in log.of(JobUpdated)] == ["running", "cancelled"]


async def test_jobs_that_still_run_at_the_end_are_cancelled(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    sessions, log = FakeChildSessions(), MemoryLog()
    children = children_of(tmp_path, sessions, log=log)

    async with children.at_work():
        await children.send(errand("wait 100", background=True))
        await children.send(errand("answer x", background=True))
        await trio.sleep(1)
    states = [(job.job.child_session_id, job.job.state) for job in log.of(JobUpdated)]
    assert states == [
        ("ses_0", "running"),
        ("ses_1", "running"),
        ("ses_1", "completed"),
        ("ses_0", "cancelled"),
    ]


async def test_a_running_child_cannot_be_told_to_go_on_and_too_many_do_not_start(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    children = children_of(tmp_path, FakeChildSessions())

    async with children.at_work():
        for _ in range(MAX_RUNNING_JOBS):
            await children.send(errand("wait 9", background=True))
        again = await children.send(errand("answer x", session="ses_0"))
        one_more = await children.send(errand("answer x", background=True))
    assert isinstance(again, NotStarted)
    assert "still running" in again.why
    assert isinstance(one_more, NotStarted)
    assert str(MAX_RUNNING_JOBS) in one_more.why


async def test_a_full_disk_in_a_child_is_nobodys_report(tmp_path: Path) -> None:
    children = children_of(tmp_path, FakeChildSessions())

    with pytest.raises(StorageError):
        async with children.at_work():
            await children.send(errand("crash"))


async def test_waiting_of_an_awaited_child_extends_its_parents_working_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    parent = StopSignal()
    parent.begin(Limits(working_seconds=10))
    began = trio.current_time()
    with parent.scope() as scope, StopSignal(above=parent).waiting(), StopSignal().waiting():
        await trio.sleep(25)

    assert not scope.cancelled_caught
    assert parent.working_deadline - began == pytest.approx(35)


def test_a_child_whose_parent_was_stopped_is_cancelled() -> None:
    verdict = judge(Interrupted("parent_stopped"), (), patch_refused=None, has_patch=False)

    assert verdict.status == "cancelled"


PRICED = ModelInfo(output=100, prices=Prices(input=Decimal(1), output=Decimal(1)))


def family(limits: Limits, child: Limits | None = None) -> tuple[Spend, Spend]:
    parent = Spend(limits, Budget(limits.cost_usd))
    mine = child or limits
    return parent, Spend(mine, Budget(mine.cost_usd, parent.budget), parent)


def test_what_a_child_uses_is_in_its_parents_totals_but_for_steps() -> None:
    parent, child = family(Limits(tokens=10_000))
    allowance = child.allow(100, PRICED)
    assert isinstance(allowance, Allowance)
    assert parent.held_tokens == allowance.tokens
    child.steps += 1
    child.settle(allowance, TokenUsage(input=70, output=5), Decimal("0.01"))

    assert (parent.tokens, parent.held_tokens, parent.usd, parent.steps) == (75, 0, child.usd, 0)
    assert parent.budget.spent == Decimal("0.01")


def test_a_parents_limits_stop_a_child() -> None:
    _, child = family(Limits(tokens=40), Limits())
    stopped = child.allow(100, PRICED)
    assert isinstance(stopped, Stopped)
    assert "tokens (40" in stopped.detail

    parent, child = family(Limits(cost_usd=Decimal("0.0001")), Limits())
    parent.budget.spent = Decimal("0.0001")
    stopped = child.allow(100, PRICED)
    assert isinstance(stopped, Stopped)
    assert "cost_usd" in stopped.detail


def test_a_call_waits_for_tokens_that_a_call_of_the_family_only_holds() -> None:
    parent, child = family(Limits(tokens=300))
    held = child.allow(100, PRICED)
    assert isinstance(held, Allowance)

    assert parent.allow(300, PRICED) == Busy(parent.budget)
    child.refund(held)
    assert isinstance(parent.allow(300, PRICED), Allowance)


def test_tool_calls_count_all_the_way_up() -> None:
    parent, child = family(Limits(tool_calls=2))

    assert [child.take_tool_call(), parent.take_tool_call()] == [None, None]
    assert child.take_tool_call() == 2
    assert (child.tool_calls, parent.tool_calls) == (1, 2)
