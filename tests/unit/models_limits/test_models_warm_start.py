"""Who waits for whom before a first request, on virtual time."""

from decimal import Decimal

import pytest
import trio
import trio.testing
from attrs import define, field
from trio.testing import MockClock

from harness_batch.config.record import ModelInfo, Prices, ProviderSettings
from harness_batch.models.warm_start import (
    LIFETIME_S,
    LONGEST_WAIT_S,
    WarmStart,
    caches_prompts,
)


@define
class Caller:
    """Sends first requests with one prefix, and notes when they went out."""

    warm_start: WarmStart = field(factory=WarmStart)
    sent: list[tuple[str, float]] = field(factory=list)

    async def call(
        self, name: str, first_byte: float | None = 2.0, prefix: str = "p", first: bool = True
    ) -> None:
        lead = await self.warm_start.turn(prefix, first=first)
        try:
            self.sent.append((name, trio.current_time()))
            await trio.sleep(1.0 if first_byte is None else first_byte)
            if first_byte is not None:
                lead.begun()
                await trio.sleep(50)
        finally:
            lead.over()


@pytest.fixture
def caller() -> Caller:
    return Caller()


async def test_one_goes_first_and_the_others_when_its_first_byte_has_come(
    autojump_clock: MockClock, caller: Caller
) -> None:
    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(caller.call, name)
            await trio.testing.wait_all_tasks_blocked()

    assert sorted(caller.sent) == [("a", 0), ("b", 2), ("c", 2)]


async def test_nobody_waits_for_one_that_failed(autojump_clock: MockClock, caller: Caller) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(caller.call, "a", None)
        for name in "bc":
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(caller.call, name)

    assert sorted(caller.sent) == [("a", 0), ("b", 1), ("c", 1)]


async def test_nobody_waits_for_one_that_was_cancelled(
    autojump_clock: MockClock, caller: Caller
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(caller.call, "b", 1.0, "other")
        with trio.move_on_after(3):
            await caller.call("a", 100.0)
        await caller.call("c")

    assert caller.sent[-1] == ("c", 3)


async def test_the_wait_has_an_end(autojump_clock: MockClock, caller: Caller) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(caller.call, "a", 500.0)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(caller.call, "b")

    assert caller.sent == [("a", 0), ("b", LONGEST_WAIT_S)]


async def test_what_is_warm_stays_so_while_it_is_used(
    autojump_clock: MockClock, caller: Caller
) -> None:
    await caller.call("a")  # ends at 52
    await trio.sleep(200)
    await caller.call("step", first=False)  # begins at 252
    await trio.sleep(200)
    async with trio.open_nursery() as nursery:
        for name in "bc":
            nursery.start_soon(caller.call, name)
    assert {when for name, when in caller.sent if name in "bc"} == {504}

    await trio.sleep(LIFETIME_S)
    async with trio.open_nursery() as nursery:
        for name in "de":
            nursery.start_soon(caller.call, name)
    assert len({when for name, when in caller.sent if name in "de"}) == 2, "it has gone cold"


async def test_other_prefixes_and_later_requests_wait_for_nobody(
    autojump_clock: MockClock, caller: Caller
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(caller.call, "a")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(caller.call, "b", 2.0, "other")
        nursery.start_soon(caller.call, "c", 2.0, "p", False)

    assert sorted(caller.sent) == [("a", 0), ("b", 0), ("c", 0)]


PRICED = {"m": ModelInfo(prices=Prices(input=Decimal(1), cache_read=Decimal("0.1")))}


@pytest.mark.parametrize(
    ("settings", "cached"),
    [
        (ProviderSettings(name="a", type="anthropic"), True),
        (ProviderSettings(name="a", type="openai-responses"), True),
        (ProviderSettings(name="a", type="openai-chat", base_url="http://127.0.0.1/v1"), False),
        (
            ProviderSettings(name="a", type="openai-chat", base_url="https://api.openai.com/v1"),
            True,
        ),
        (ProviderSettings(name="a", type="openai-chat", models=PRICED), True),
    ],
)
def test_it_is_known_who_caches_prompts(settings: ProviderSettings, cached: bool) -> None:
    assert caches_prompts(settings, "m") is cached
