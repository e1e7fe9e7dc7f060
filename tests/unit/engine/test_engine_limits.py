"""Limits' pure parts: what is held, what is short, what is told before and after."""

import math
from decimal import Decimal

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from harness_batch.config.record import ModelInfo, Prices, Tier
from harness_batch.engine.budget import Budget
from harness_batch.engine.endings import Stopped
from harness_batch.engine.spend import Allowance, Busy, Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.turns import AskModel, MakeRoom, Situation, Stop, WrapUp, next_step
from harness_batch.engine.wrap_up import wrap_up_note
from harness_batch.limits import Limits
from harness_batch.messages import Message, Part, Text, TokenUsage, Turn

PRICES = Prices(input=Decimal(3), output=Decimal(15), cache_write=Decimal("3.75"))
PRICED = ModelInfo(prices=PRICES)


def allowed(spend: Spend, size: int = 2000) -> Allowance:
    allowance = spend.allow(size, PRICED)
    assert isinstance(allowance, Allowance)
    return allowance


def test_input_is_reserved_at_its_dearest_class_by_half_its_bytes() -> None:
    spend = Spend(Limits(output_tokens=1000), Budget(Decimal(1)))

    # 2,000 bytes are 1,000 tokens at 3.75, and 1,000 tokens of output at 15.
    assert allowed(spend).usd == Decimal("0.01875")


def test_the_dearer_cache_of_an_hour_is_reserved_only_where_it_is_asked_for() -> None:
    hour = evolve(PRICES, cache_write_1h=Decimal(6))
    costs = []
    for info in (ModelInfo(prices=hour), ModelInfo(prices=hour, hour_cache=True)):
        spend = Spend(Limits(output_tokens=1000), Budget(Decimal(1)))
        allowance = spend.allow(2000, info)
        assert isinstance(allowance, Allowance)
        costs.append(allowance.usd)
    # 1,000 tokens at 3.75 or at 6, and 1,000 tokens of output at 15.
    assert costs == [Decimal("0.01875"), Decimal("0.021")]


def test_a_request_that_may_reach_a_tier_is_reserved_at_its_rates() -> None:
    tier = Tier(above=500, input=Decimal(6), output=Decimal(30))
    spend = Spend(Limits(output_tokens=1000), Budget(Decimal(1)))
    allowance = spend.allow(2000, ModelInfo(prices=evolve(PRICES, tiers=(tier,))))
    assert isinstance(allowance, Allowance)
    # 1,000 tokens at 6 and 1,000 at 30.
    assert allowance.usd == Decimal("0.036")


def test_money_that_calls_under_way_hold_is_waited_for_and_not_fought_over() -> None:
    run = Budget(Decimal("0.03"))
    first = Spend(Limits(output_tokens=1000), Budget(None, run))
    second = Spend(Limits(output_tokens=1000), Budget(None, run))
    held = allowed(first)

    assert second.allow(2000, PRICED) == Busy(run)
    first.settle(held, TokenUsage(input=500, output=100), Decimal("0.003"))
    assert allowed(second).max_output_tokens == 1000


async def test_who_waits_for_money_wakes_when_a_call_has_ended(
    autojump_clock: MockClock,
) -> None:
    budget = Budget(Decimal(1))
    budget.reserve(Decimal(1))

    async def settle_later() -> None:
        await trio.sleep(5)
        budget.settle(Decimal(1), Decimal("0.1"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle_later)
        await budget.settled()

    assert trio.current_time() == 5
    assert budget.left() == Decimal("0.9")


def test_when_nobody_holds_money_the_rest_of_it_is_given_to_a_shorter_reply() -> None:
    run = Budget(Decimal("0.03"), spent=Decimal("0.02"))
    spend = Spend(Limits(output_tokens=1000), Budget(Decimal(5), run))

    allowance = allowed(spend)

    # 0.01 less 0.00375 for the input buys 416 tokens.
    assert allowance.max_output_tokens == 416
    assert run.reserved <= Decimal("0.01")
    assert allowance.short is not None
    assert "of the run's cost (0.03; used 0.02)" in allowance.short.detail
    assert not run.exhausted
    assert spend.cut_off(allowance) == allowance.short
    assert run.exhausted


def test_a_full_ceiling_is_not_short_of_anything() -> None:
    spend = Spend(Limits(output_tokens=1000, tokens=100_000), Budget(Decimal(5)))

    assert allowed(spend).short is None


def test_tokens_of_calls_under_way_are_held() -> None:
    spend = Spend(Limits(tokens=3000, output_tokens=1500), Budget(None))

    held = allowed(spend)
    assert held.tokens == 2500
    assert isinstance(spend.allow(2000, PRICED), Busy), "most of what is held comes back"
    spend.refund(held)
    assert allowed(spend).tokens == 2500


def test_tokens_of_a_class_without_a_price_count_at_the_ceiling() -> None:
    spend = Spend(Limits(), Budget(Decimal(1)))
    held = allowed(spend)

    assert spend.settle(held, TokenUsage(input=10, cache_read=5), None) == held.usd
    assert spend.budget.spent == held.usd


def test_a_call_that_may_have_been_answered_counts_and_one_that_was_refused_does_not() -> None:
    spend = Spend(Limits(), Budget(Decimal(1)))

    assert spend.refund(allowed(spend)) == 0
    held = allowed(spend)
    assert spend.forfeit(held) == held.usd == spend.budget.spent
    assert spend.tokens == held.tokens
    assert spend.held_tokens == 0
    assert spend.cost() == 0


def test_an_overrun_is_told_with_what_was_reserved() -> None:
    run = Budget(Decimal("0.1"))
    spend = Spend(Limits(tokens=3000, output_tokens=1000), Budget(Decimal("0.1"), run))
    held = allowed(spend)
    usage = TokenUsage(input=90_000, output=10)
    settled = spend.settle(held, usage, Decimal("0.27"))

    told = list(spend.overruns(held, 90_010, settled))

    assert len(told) == 3
    assert told[0] == (
        "a model call used 90010 tokens, 2000 were reserved: 90010 of 3000 tokens are used"
    )
    assert "0.27 of 0.1 USD are spent" in told[1]
    assert list(spend.overruns(held, 10, Decimal(0))) == []


@pytest.mark.parametrize(
    ("limits", "used", "what"),
    [
        (Limits(), ("0", None, 0, 0), None),
        (Limits(cost_usd=Decimal(1)), ("0.79", None, 0, 0), None),
        (Limits(cost_usd=Decimal(1)), ("0.80", None, 0, 0), "cost"),
        (Limits(), ("0.40", "0.50", 0, 0), "cost"),
        (Limits(tokens=1000), ("0", None, 799, 0), None),
        (Limits(tokens=1000), ("0", None, 800, 0), "tokens"),
        (Limits(seconds=100), ("0", None, 0, 79), None),
        (Limits(seconds=100), ("0", None, 0, 80), "time"),
        (Limits(working_seconds=100), ("0", None, 0, 80), "working time"),
        (Limits(seconds=100, tokens=10), ("0", None, 9, 80), "tokens, time"),
    ],
)
def test_the_model_is_told_when_four_fifths_are_used(
    limits: Limits, used: tuple[str, str | None, int, float], what: str | None
) -> None:
    spent, run, tokens, now = used
    budget = Budget(limits.cost_usd, Budget(Decimal(run) if run else None))
    budget.reserve(Decimal(0))
    budget.settle(Decimal(0), Decimal(spent))
    spend = Spend(limits, budget, tokens=tokens)
    stop = StopSignal(deadline=limits.seconds or math.inf)
    stop.working_deadline = limits.working_seconds or math.inf

    note = wrap_up_note(spend, stop, now)

    assert note is None if what is None else note is not None and f"({what})" in note


def situation(**changes: object) -> Situation:
    facts = {"reply": None, "steps": 0, "limits": Limits(steps=3)} | changes
    return Situation(**facts)  # type: ignore[arg-type]  # a table of facts


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"wrap_up": "soon"}, WrapUp("soon")),
        ({"wrap_up": "soon", "window_full": True}, MakeRoom()),
        ({"wrap_up": "soon", "steps": 2}, AskModel(last=True)),
        ({"window_full": True, "steps": 2}, MakeRoom()),
        ({"window_full": True, "final_output": "{}"}, None),
    ],
)
def test_room_comes_before_notes_and_the_last_step_has_its_own_note(
    facts: dict[str, object], expected: object
) -> None:
    step = next_step(situation(**facts))

    assert step == expected if expected is not None else isinstance(step, Stop)


def test_a_reply_that_was_cut_off_for_money_ends_as_out_of_money() -> None:
    message = Message(
        id="msg_1",
        session_id="ses_1",
        attempt_id="att_1",
        role="assistant",
        created_at="2026-01-01T00:00:00Z",
        finish_reason="length",
    )
    said = Part(id="p", message_id="msg_1", session_id="ses_1", idx=0, body=Text(text="so far"))
    short = Stopped("max_cost", "the next model call would pass it")

    step = next_step(situation(reply=Turn(message, (said,)), steps=1, short=short))

    assert step == Stop(Stopped("max_cost", "the next model call would pass it", "so far"))
