"""One attempt on a clock that jumps: streams, tools, retries, stops, and what is always true."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from fakes import ANSWER, Beat, FakeTool, Pause, Said, Studio, call, faults, finish, text
from harness_batch.engine.stop import StopSignal
from harness_batch.errors import (
    AuthFailed,
    HarnessError,
    NetworkFailure,
    ProviderTimeout,
    RateLimited,
    StorageError,
    Unavailable,
)
from harness_batch.events import (
    MessageUpdated,
    ModelCallClosed,
    Notice,
    PatchWritten,
    ToolCallFinished,
)
from harness_batch.limits import Limits
from harness_batch.messages import Failed, JsonObject, TokenUsage, ToolUse
from harness_batch.models.protocol import (
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.recipe.record import Check
from harness_batch.rules import Ask
from harness_batch.tools.protocol import ToolContext

STARTED = ReplyStarted(200, "rsp_1", "m", usage=TokenUsage(input=70, output=1))
WORKING: Said = (STARTED, *call(1, arguments='{"seconds": 100}'), finish("tool_calls"))


def replied(*blocks: list[Beat], reason: str = "stop") -> Said:
    return (STARTED, *(beat for block in blocks for beat in block), finish(reason))


def working(*numbers: int, seconds: float = 1) -> Said:
    arguments = [f'{{"seconds": {seconds}, "n": {number}}}' for number in numbers]
    calls = [call(n, arguments=a) for n, a in zip(numbers, arguments, strict=True)]
    return replied(*calls, reason="tool_calls")


async def stopped_after(seconds: float, studio: Studio, reason: str = "interrupted") -> Any:
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            await trio.sleep(seconds)
            studio.stop.ask(reason)

        nursery.start_soon(ask)
        return await studio.run()


async def test_a_slow_tool_does_not_stall_the_reader(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    studio = Studio(
        tmp_path,
        [(*WORKING[:-1], Pause(2), *text("and so on"), Pause(1), finish("tool_calls"))],
    )

    ended = await studio.run()

    assert ended.status == "passed"
    assert studio.model.read_at[0] - studio.model.asked_at[0] == pytest.approx(3)
    assert studio.tool.ended[0] - studio.tool.began[0] == pytest.approx(100)
    assert studio.model.asked_at[1] >= studio.tool.ended[0], "the next request has the result"


async def test_tools_run_one_at_a_time_in_the_order_of_the_stream(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    studio = Studio(tmp_path, [working(1, 2, 3, seconds=10)])

    await studio.run()

    assert [one["n"] for one in studio.tool.ran] == [1, 2, 3]
    assert all(
        began >= ended
        for began, ended in zip(studio.tool.began[1:], studio.tool.ended, strict=False)
    )
    results = [use for turn in studio.model.requests[1].turns for use in turn.tool_uses()]
    assert [use.call_id for use in results] == ["call_1", "call_2", "call_3"]


async def test_a_step_is_tried_eight_times_with_growing_waits(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    studio = Studio(tmp_path, [(Unavailable("x: HTTP 503", status=503),)] * 20)

    ended = await studio.run()

    assert (ended.status, ended.reason) == ("errored", "provider_unavailable")
    at = studio.model.asked_at
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert len(at) == 8
    for wait, least in zip(waits, (2, 4, 8, 16, 30, 30, 30), strict=True):
        assert least <= wait <= least * 1.25
    rows = [event.call for event in studio.log.of(ModelCallClosed)]
    assert [row.try_ for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {(row.step, row.error_kind, row.http_status) for row in rows} == {
        (1, "unavailable", 503)
    }
    assert ended.working_s == pytest.approx(0, abs=1e-6)
    assert ended.wall_s == pytest.approx(sum(waits))
    assert studio.spend.budget.reserved == 0
    assert studio.spend.budget.spent == 0


async def test_the_servers_own_word_on_the_wait_is_kept(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    refused = [(RateLimited("x", retry_after=41),), (Unavailable("x", retry_after=0.5),)]
    studio = Studio(tmp_path, [*refused, ANSWER])

    ended = await studio.run()

    at = studio.model.asked_at
    assert ended.status == "passed"
    assert [at[1] - at[0], at[2] - at[1]] == pytest.approx([41, 0.5])


async def test_what_trying_again_cannot_mend_is_tried_once(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    studio = Studio(tmp_path, [(AuthFailed("x: HTTP 401", status=401),)] * 3)

    ended = await studio.run()

    assert (ended.reason, len(studio.model.requests)) == ("provider_auth", 1)


async def test_no_wait_is_begun_that_would_pass_the_time_limit(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    studio = Studio(tmp_path, [(NetworkFailure("x: lost"),)] * 20, limits=Limits(seconds=20))

    ended = await studio.run()

    assert (ended.status, ended.reason) == ("errored", "provider_network")
    assert len(studio.model.requests) in (3, 4)
    assert (ended.wall_s or 0) < 20
    notices = [event.text for event in studio.log.of(Notice)]
    assert notices[-1].startswith("no retry: waiting ")


async def test_waiting_for_a_provider_is_no_working_time(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    limits = Limits(working_seconds=10)
    waits: list[Said] = [(RateLimited("x", retry_after=60),)]
    studio = Studio(
        tmp_path, [*waits, working(1, seconds=4), working(2, seconds=40)], limits=limits
    )

    ended = await studio.run()

    assert (ended.status, ended.reason) == ("failed", "max_working_seconds")
    assert ended.wall_s == pytest.approx(70)
    assert ended.working_s == pytest.approx(10)


async def test_a_stop_ends_the_wait_for_a_retry_at_once(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    studio = Studio(tmp_path, [(RateLimited("x", retry_after=1000),)])

    ended = await stopped_after(5, studio)

    assert (ended.status, ended.reason) == ("cancelled", "interrupted")
    assert ended.wall_s == pytest.approx(5)
    assert faults(studio.log, 0) == []


BREAKS: dict[str, list[Beat]] = {
    "in a text": [TextStart("t"), TextDelta("t", "I th"), NetworkFailure("x: lost")],
    "after a text": [*text("So."), ProviderTimeout("x: no event for 9 s")],
    "in a call": [
        ToolInputStart("call_9", "work"),
        ToolInputDelta("call_9", '{"sec'),
        NetworkFailure("x: lost"),
    ],
    "without its end": text("So."),
}


@pytest.mark.parametrize("name", BREAKS)
async def test_a_reply_that_broke_off_is_asked_for_once_more(
    autojump_clock: MockClock, tmp_path: Path, name: str
) -> None:
    broken: Said = (STARTED, *BREAKS[name])
    once = Studio(tmp_path, [broken, ANSWER])
    twice = Studio(tmp_path, [broken] * 3)

    ended, failed = await once.run(), await twice.run()

    assert ended.status == "passed"
    assert failed.status == "errored"
    assert failed.retryable
    for studio in (once, twice):
        assert len(studio.model.requests) == 2
        assert studio.model.asked_at[0] == studio.model.asked_at[1], "there is nothing to wait for"
        assert studio.model.requests[0].turns == studio.model.requests[1].turns
        assert faults(studio.log, 0) == []
    row = once.log.of(ModelCallClosed)[0].call
    assert (row.input_tokens, row.cost_usd, row.http_status) == (70, None, 200)


async def test_a_broken_reply_whose_call_was_run_is_not_asked_for_again(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    broken: Said = (
        *working(1)[:-1],
        ToolInputStart("call_2", "work"),
        NetworkFailure("x: lost"),
    )
    studio = Studio(tmp_path, [broken, ANSWER])

    ended = await studio.run()

    assert ended.status == "passed"
    assert len(studio.tool.ran) == 1
    kept = studio.model.requests[1].turns[-1]
    assert kept.message.finish_reason == "unknown"
    cut = kept.tool_uses()[1]
    assert isinstance(cut.state, Failed)
    assert "nothing was run" in cut.state.error
    assert faults(studio.log, 1) == []


async def test_a_stop_under_a_tool_marks_call_part_and_message_and_keeps_the_patch(
    autojump_clock: MockClock,
    tmp_path: Path,
) -> None:
    studio = Studio(tmp_path, [working(1, 2, seconds=100)])

    ended = await stopped_after(30, studio)

    assert (ended.status, ended.wall_s) == ("cancelled", pytest.approx(30))
    (row,) = (event.call for event in studio.log.of(ToolCallFinished))
    assert (row.status, row.duration_s) == ("interrupted", pytest.approx(30))
    uses = [part.body for part in studio.log.parts() if isinstance(part.body, ToolUse)]
    assert [use.state.error for use in uses if isinstance(use.state, Failed)] == ["interrupted"] * 2
    assert studio.log.of(MessageUpdated)[-1].message.error == "aborted"
    assert studio.written["change.patch"]
    assert len(studio.log.of(PatchWritten)) == 1
    assert faults(studio.log, 1) == []


async def test_a_stop_in_the_middle_of_a_reply_closes_its_call(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    studio = Studio(tmp_path, [(STARTED, TextStart("t"), TextDelta("t", "I th"), Pause(9999))])

    ended = await stopped_after(7, studio, "max_cost")

    assert (ended.status, ended.reason) == ("failed", "max_cost")
    row = studio.log.of(ModelCallClosed)[0].call
    assert (row.error_kind, row.duration_s) == ("cancelled", pytest.approx(7))
    assert (row.response_id, row.input_tokens) == ("rsp_1", 70)
    assert studio.spend.budget.reserved == 0
    assert faults(studio.log, 0) == []


async def test_the_time_limit_holds_whatever_is_under_way(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    limits = Limits(seconds=25)
    in_tool = Studio(tmp_path, [working(1, seconds=100)], limits=limits)
    in_reply = Studio(tmp_path, [(STARTED, Pause(100), finish())], limits=limits)
    in_check = Studio(
        tmp_path, [ANSWER], limits=limits, recipe={"checks": (Check(name="slow", run="100"),)}
    )

    for studio in (in_tool, in_reply, in_check):
        ended = await studio.run()
        assert (ended.status, ended.reason) == ("failed", "max_time")
        assert ended.wall_s == pytest.approx(25)
        assert faults(studio.log, len(studio.tool.ran)) == []


async def test_a_bug_in_a_tool_ends_the_session_errored_with_all_rows_closed(
    autojump_clock: MockClock,
    tmp_path: Path,
) -> None:
    studio = Studio(tmp_path, [replied(call(1, arguments='{"crash": true}'), reason="tool_calls")])

    ended = await studio.run()

    assert (ended.status, ended.reason) == ("errored", "internal")
    assert b"RuntimeError: a bug in the tool" in studio.written["traceback.txt"]
    assert faults(studio.log, 1) == []


class Modest(FakeTool):
    """Asks for nothing, though it names a permission."""

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask]:
        del arguments, context
        return ()


async def test_a_call_that_asks_for_nothing_runs_only_where_its_tool_needs_no_permission(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    needy = Studio(tmp_path, [working(1)], tool=Modest(permission="bash"))
    free = Studio(tmp_path, [working(1)], tool=Modest(permission=""))

    await needy.run()
    await free.run()

    assert (len(needy.tool.ran), len(free.tool.ran)) == (0, 1)
    assert [event.call.status for event in needy.log.of(ToolCallFinished)] == ["denied"]


@pytest.mark.parametrize("at", [3, 5, 8, 11, 14])
async def test_a_disk_that_fails_ends_the_attempt_with_its_own_error(
    autojump_clock: MockClock, tmp_path: Path, at: int
) -> None:
    studio = Studio(tmp_path, [working(1, 2)])
    studio.log.broken_at = at
    studio.log.error = StorageError("No space left on device")

    with pytest.raises(StorageError, match="No space left"):
        await studio.run()
    assert studio.written.keys() <= {"change.patch"}


ERRORS: list[HarnessError] = [
    NetworkFailure("x: lost"),
    Unavailable("x: HTTP 500", status=500),
    RateLimited("x: HTTP 429", status=429, retry_after=3),
    AuthFailed("x: HTTP 401", status=401),
]
ARGUMENTS = ['{"seconds": 3}', "{}", "[1]", '{"sec', '{"pattern": "else"}', '{"crash": true}']
NUMBERS = st.integers(1, 99)
BLOCKS = st.one_of(
    st.builds(text, st.text(max_size=5)),
    st.builds(
        call, NUMBERS, st.sampled_from(["work", "Work", "other"]), st.sampled_from(ARGUMENTS)
    ),
    st.builds(lambda seconds: [Pause(seconds)], st.sampled_from([0.5, 40])),
    st.builds(lambda n: [ToolInputStart(f"open_{n}", "work")], NUMBERS),
)
REASONS = st.sampled_from(["stop", "tool_calls", "tool_calls", "length", "unknown"])
ENDS = st.one_of(
    st.builds(lambda reason: [finish(reason)], REASONS),
    st.builds(lambda reason: [finish(reason, None)], REASONS),
    st.builds(lambda error: [error], st.sampled_from(ERRORS)),
    st.just([]),
)


def unique(blocks: list[list[Beat]], end: list[Beat]) -> Said:
    """Ids are unique in a reply, as models' readers make sure."""
    found: list[Beat] = [STARTED] if blocks else []
    for number, block in enumerate(blocks):
        found += [_renamed(beat, f"{number}") for beat in block]
    return (*found, *end)


def _renamed(beat: Beat, key: str) -> Beat:
    match beat:
        case TextStart() | TextDelta() | TextEnd():
            return evolve(beat, id=key)
        case ToolInputStart() | ToolInputDelta() | ToolCall():
            return evolve(beat, call_id=key)
        case _:
            return beat


REPLIES = st.builds(unique, st.lists(BLOCKS, max_size=4), ENDS)
LIMITS = st.builds(
    Limits,
    steps=st.sampled_from([1, 2, 5]),
    tool_calls=st.sampled_from([None, 0, 2]),
    tokens=st.sampled_from([None, 1500, 20_000]),
    seconds=st.sampled_from([None, 10, 100]),
)


@given(st.lists(REPLIES, max_size=5), LIMITS, st.sampled_from([None, 0.0, 2.0, 45.0]))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_whatever_happens_rows_end_and_nothing_runs_unallowed(
    script: list[Said], limits: Limits, stop_after: float | None
) -> None:
    async def session(folder: Path) -> None:
        studio = Studio(folder, script, limits=limits, recipe={"on_denial": 2}, tool=FakeTool())
        if stop_after is None:
            ended = await studio.run()
        else:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_stop, studio.stop, stop_after)
                    ended = await studio.run()
                    scope.cancel()
        assert ended.status is not None
        assert faults(studio.log, len(studio.tool.ran)) == []
        assert len(studio.model.requests) == len(studio.log.of(ModelCallClosed))
        assert studio.spend.budget.reserved == 0
        assert all(one.get("pattern", "work") == "work" for one in studio.tool.ran)
        if limits.tool_calls is not None:
            assert len(studio.tool.ran) <= limits.tool_calls
        assert limits.steps is not None
        assert studio.spend.steps <= limits.steps
        if limits.seconds is not None:
            assert (ended.wall_s or 0) <= limits.seconds + 0.001

    with TemporaryDirectory() as name:
        trio.run(session, Path(name), clock=MockClock(autojump_threshold=0))


async def _stop(stop: StopSignal, seconds: float) -> None:
    await trio.sleep(seconds)
    stop.ask("interrupted")
