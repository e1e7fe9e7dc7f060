"""Who may send a request when, on virtual time: nobody waits for ever, nobody overtakes."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import trio
import trio.testing
from attrs import define, field
from trio.testing import MockClock

from harness_batch.errors import (
    AuthFailed,
    NetworkFailure,
    Overloaded,
    ProviderClosed,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from harness_batch.models.limiter import Change, ProviderLimiter
from harness_batch.models.throttle import Throttle


@define
class Door:
    """A limiter, what it told, and who came through when."""

    width: float = 2.0
    told: list[Change] = field(factory=list)
    came: list[tuple[str, float]] = field(factory=list)
    limiter: ProviderLimiter = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.limiter = ProviderLimiter("mine", self.told.append, Throttle(limit=self.width))

    async def visit(
        self,
        name: str,
        seconds: float = 1.0,
        error: Callable[[], ProviderError] | None = None,
        *,
        again: bool = False,
        deadline: float = math.inf,
    ) -> None:
        leave = await self.limiter.enter(again=again, deadline=deadline)
        try:
            self.came.append((name, trio.current_time()))
            await trio.sleep(seconds)
            if error is None:
                leave.replied(None)
            else:
                leave.failed(failure := error())
                self.limiter.note_end(failure)
        finally:
            leave.release()
            leave.release()


@pytest.fixture
def door() -> Door:
    return Door()


async def test_no_more_than_the_width_are_inside_and_they_come_in_order(
    autojump_clock: MockClock, door: Door
) -> None:
    async with trio.open_nursery() as nursery:
        for name in "abcdef":
            nursery.start_soon(door.visit, name)
            await trio.testing.wait_all_tasks_blocked()

    assert door.came == [("a", 0), ("b", 0), ("c", 1), ("d", 1), ("e", 2), ("f", 2)]
    assert door.limiter.under_way == 0


async def test_after_a_refusal_the_others_wait_until_it_has_cooled_down(
    autojump_clock: MockClock, door: Door
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.visit, "hit", 1.0, partial(RateLimited, "slow"))
        await trio.sleep(2)
        nursery.start_soon(door.visit, "other")
        nursery.start_soon(partial(door.visit, "hit again", again=True))

    assert door.came == [("hit", 0), ("hit again", 2), ("other", 16)]
    assert [(c.cause, c.before, c.width, c.cool_down_s) for c in door.told] == [
        ("rate_limit", 2, 1, 15.0),
        ("increase", 1, 2, None),
    ]


async def test_the_servers_own_word_holds_all(autojump_clock: MockClock, door: Door) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.visit, "hit", 1.0, partial(Overloaded, "busy", retry_after=40))
        await trio.sleep(1.5)
        for name in "ab":
            nursery.start_soon(door.visit, name)
            await trio.testing.wait_all_tasks_blocked()

    assert door.came == [("hit", 0), ("a", 41), ("b", 42)]


@pytest.mark.parametrize("kind", [NetworkFailure, Unavailable])
async def test_other_failures_hold_nobody(
    autojump_clock: MockClock, door: Door, kind: type[ProviderError]
) -> None:
    await door.visit("hit", 1.0, lambda: kind("cut"))
    await door.visit("other")

    assert door.came == [("hit", 0), ("other", 1)]
    assert door.told == []


async def test_two_terminal_errors_in_a_row_close_it_for_whoever_waits(
    autojump_clock: MockClock, door: Door
) -> None:
    closed: list[str] = []

    async def hopeful(name: str) -> None:
        try:
            await door.visit(name)
        except ProviderClosed:
            closed.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.visit, "a", 1.0, partial(AuthFailed, "who?"))
        nursery.start_soon(door.visit, "b", 2.0, partial(QuotaExhausted, "no credit"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(door.visit, "c", 5.0)
        for name in "de":
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(hopeful, name)

    assert sorted(door.came) == [("a", 0), ("b", 0), ("c", 1)]
    assert closed == ["d", "e"]
    assert [(change.cause, change.width) for change in door.told] == [("quota", 0)]


async def test_a_key_that_is_missing_counts_without_a_request(
    autojump_clock: MockClock, door: Door
) -> None:
    door.limiter.note_end(AuthFailed("no key"))
    await door.visit("a")
    door.limiter.note_end(AuthFailed("no key"))
    door.limiter.note_end(AuthFailed("no key"))

    with pytest.raises(ProviderClosed, match="mine"):
        await door.visit("b")


async def test_whoever_has_less_time_than_the_cool_down_is_told_at_once(
    autojump_clock: MockClock, door: Door
) -> None:
    await door.visit("hit", 0.0, partial(RateLimited, "slow", retry_after=900))

    with pytest.raises(RateLimited, match="waiting 900 s would pass the time limit"):
        await door.visit("hasty", deadline=600)
    assert trio.current_time() == 0


async def test_a_waiter_learns_of_a_cool_down_that_begins_while_it_waits(
    autojump_clock: MockClock, door: Door
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(door.visit, "a", 5.0, partial(RateLimited, "slow", retry_after=900))
        nursery.start_soon(door.visit, "b", 7.0)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(RateLimited):
            await door.visit("hasty", deadline=600)
        assert trio.current_time() == 5


@pytest.mark.parametrize("again", [True, False])
async def test_a_waiter_can_be_cancelled_and_the_next_one_comes(
    autojump_clock: MockClock, door: Door, again: bool
) -> None:
    async with trio.open_nursery() as nursery:
        for name in "ab":
            nursery.start_soon(door.visit, name, 10.0)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(3) as scope:
            await door.visit("gone", again=again)
        nursery.start_soon(door.visit, "c")

    assert scope.cancelled_caught
    assert sorted(door.came) == [("a", 0), ("b", 0), ("c", 10)]
    assert door.limiter.under_way == 0


async def test_one_that_is_cancelled_inside_gives_its_place_back(
    autojump_clock: MockClock, door: Door
) -> None:
    for _ in range(5):
        with trio.move_on_after(1):
            await door.visit("gone", 100.0)
    await door.visit("last")

    assert door.limiter.under_way == 0
    assert door.came[-1] == ("last", 5)
