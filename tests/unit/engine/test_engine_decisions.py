"""The engine's pure parts: what comes next, what fits, what is stuck, how it is judged."""

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.config.record import ModelInfo, Prices
from harness_batch.engine import retry
from harness_batch.engine.budget import Budget
from harness_batch.engine.doom_loop import Call, Window, is_stuck
from harness_batch.engine.endings import Answered, Broke, Interrupted, Stopped
from harness_batch.engine.spend import Allowance, Spend
from harness_batch.engine.turns import AskModel, Remind, Situation, Stop, next_step
from harness_batch.engine.verdict import judge
from harness_batch.errors import AuthFailed, NetworkFailure, RateLimited, Unavailable
from harness_batch.limits import Limits
from harness_batch.messages import (
    Completed,
    FinishReason,
    Message,
    Part,
    PartBody,
    Text,
    TokenUsage,
    ToolUse,
    Turn,
)
from harness_batch.records import CheckResult


def reply(reason: FinishReason, *bodies: PartBody) -> Turn:
    message = Message(
        id="msg_1",
        session_id="ses_1",
        attempt_id="att_1",
        role="assistant",
        created_at="2026-01-01T00:00:00Z",
        finish_reason=reason,
    )
    parts = (
        Part(id=f"prt_{i}", message_id="msg_1", session_id="ses_1", idx=i, body=body)
        for i, body in enumerate(bodies)
    )
    return Turn(message, tuple(parts))


DONE_CALL = ToolUse(call_id="c1", name="read", state=Completed(input={}, title="", output="x"))


def situation(**changes: object) -> Situation:
    facts = {"reply": None, "steps": 0, "limits": Limits(steps=3)} | changes
    return Situation(**facts)  # type: ignore[arg-type]  # a table of facts


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, AskModel()),
        ({"limits": Limits(steps=1)}, AskModel(last=True)),
        ({"limits": Limits()}, AskModel()),
        ({"reply": reply("stop", Text(text="done")), "steps": 1}, Stop(Answered("done"))),
        ({"reply": reply("tool_calls", DONE_CALL), "steps": 1}, AskModel()),
        ({"reply": reply("tool_calls", DONE_CALL), "steps": 2}, AskModel(last=True)),
        ({"reply": reply("unknown", DONE_CALL), "steps": 1}, AskModel()),
        ({"final_output": "{}"}, Stop(Answered("{}"))),
    ],
)
def test_the_next_step_follows_from_the_newest_reply(
    facts: dict[str, object], expected: object
) -> None:
    assert next_step(situation(**facts)) == expected


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"reply": reply("length", Text(text="cut")), "steps": 1}, "output_length"),
        ({"reply": reply("content_filter"), "steps": 1}, "content_filter"),
        ({"reply": reply("stop", Text(text="so far")), "steps": 3}, "max_steps"),
        ({"reply": reply("tool_calls", DONE_CALL), "steps": 3}, "max_steps"),
        ({"doom_loop": "again"}, "doom_loop"),
        ({"denials": 1, "on_denial": "fail"}, "permission"),
        ({"denials": 2, "on_denial": 2}, "permission"),
        ({"over_tool_calls": True}, "max_tool_calls"),
        (
            {
                "reply": reply("stop", Text(text="prose")),
                "steps": 1,
                "needs_final_output": True,
                "reminders": 3,
            },
            "schema",
        ),
    ],
)
def test_what_ends_a_session_as_failed(facts: dict[str, object], reason: str) -> None:
    step = next_step(situation(**facts))

    assert isinstance(step, Stop)
    assert isinstance(step.ending, Stopped)
    assert step.ending.reason == reason


def test_denials_below_the_declared_number_do_not_end_the_session() -> None:
    assert next_step(situation(denials=1, on_denial=2)) == AskModel()
    assert next_step(situation(denials=99, on_denial="continue")) == AskModel()


def test_prose_instead_of_final_output_is_answered_by_a_reminder() -> None:
    facts = {"reply": reply("stop", Text(text="prose")), "steps": 1, "needs_final_output": True}

    assert isinstance(next_step(situation(**facts)), Remind)


def test_three_equal_calls_make_the_fourth_a_loop_across_messages() -> None:
    window = Window()
    call = Call.of("bash", {"command": "ls", "timeout": 3})
    for result in ("a", "b"):
        window.add(call, result)
    assert not window.stuck(call)
    window.add(call, "c")

    assert window.stuck(Call.of("bash", {"timeout": 3, "command": "ls"}))
    assert not window.stuck(Call.of("bash", {"command": "ls -l"}))


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_cycle_with_equal_results_is_a_loop_and_one_with_progress_is_not(length: int) -> None:
    same, progress = Window(), Window()
    for round_ in range(3):
        for i in range(length):
            same.add(Call.of("read", {"file_path": str(i)}), "unchanged")
            progress.add(Call.of("read", {"file_path": str(i)}), f"round {round_}")

    assert same.stuck(Call.of("read", {"file_path": "0"}))
    assert not progress.stuck(Call.of("read", {"file_path": "0"}))


@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.sampled_from("abcdef"))
def test_a_call_that_is_new_to_the_session_is_never_a_loop(names: list[str], name: str) -> None:
    calls = [Call(other, "", "") for other in names if other != name]

    assert not is_stuck(calls, Call(name, ""))


def test_a_reservation_must_fit_the_session_and_the_run() -> None:
    run = Budget(Decimal("1.00"))
    one, other = Budget(Decimal("0.80"), run), Budget(None, run)

    assert one.reserve(Decimal("0.70"))
    assert not other.reserve(Decimal("0.40"))
    assert other.reserve(Decimal("0.30"))
    one.settle(Decimal("0.70"), Decimal("0.10"))
    assert run.spent == Decimal("0.10")
    assert run.left() == Decimal("0.60")


@given(
    st.lists(
        st.tuples(st.booleans(), st.decimals("0.001", "2", places=3), st.floats(0, 1)), max_size=40
    )
)
def test_spent_and_reserved_never_pass_a_limit(
    moves: list[tuple[bool, Decimal, float]],
) -> None:
    run = Budget(Decimal("2.5"))
    sessions = [Budget(Decimal("1.5"), run), Budget(Decimal("1.5"), run)]
    held: list[tuple[Budget, Decimal]] = []
    for first, amount, share in moves:
        session = sessions[first]
        if session.reserve(amount):
            held.append((session, amount))
        if held and share > 0.5:
            owner, reserved = held.pop(0)
            owner.settle(reserved, (reserved * Decimal(str(share))).quantize(Decimal("1e-9")))
        for budget in (run, *sessions):
            assert budget.limit is not None
            assert budget.spent + budget.reserved <= budget.limit
            assert budget.reserved >= 0


PRICES = Prices(input=Decimal(3), output=Decimal(15))


def test_output_is_lowered_to_what_the_money_buys() -> None:
    spend = Spend(Limits(output_tokens=8000), Budget(Decimal("0.05")))

    allowance = spend.allow(10_000, ModelInfo(prices=PRICES))

    assert isinstance(allowance, Allowance)
    # 5,000 estimated input tokens at 3 USD are 0.015; 0.035 buy 2,333 output tokens at 15 USD.
    assert allowance.max_output_tokens == 2333
    assert allowance.usd <= Decimal("0.05")


def test_a_call_that_cannot_be_paid_is_not_made() -> None:
    spend = Spend(Limits(cost_usd=Decimal("0.01")), Budget(Decimal("0.01")))

    refused = spend.allow(10_000, ModelInfo(prices=PRICES))

    assert isinstance(refused, Stopped)
    assert refused.reason == "max_cost"
    assert spend.budget.reserved == 0


def test_a_call_that_passes_the_token_limit_is_not_made() -> None:
    spend = Spend(Limits(tokens=1000), Budget(None))

    assert isinstance(spend.allow(10_000, ModelInfo()), Stopped)
    allowance = spend.allow(1000, ModelInfo())
    assert isinstance(allowance, Allowance)
    assert allowance.max_output_tokens == 500


def test_an_unreported_call_counts_at_its_ceiling() -> None:
    spend = Spend(Limits(), Budget(Decimal(1)))
    allowance = spend.allow(1000, ModelInfo(prices=PRICES))
    assert isinstance(allowance, Allowance)

    spend.settle(allowance, None, None)

    assert spend.budget.spent == allowance.usd
    assert spend.tokens == allowance.tokens
    assert spend.cost() is None


def test_estimates_follow_the_last_report() -> None:
    spend = Spend(Limits(), Budget(None))
    spend.learn(4000, TokenUsage(input=1000))

    allowance = spend.allow(8000, ModelInfo())

    assert isinstance(allowance, Allowance)
    assert allowance.tokens - allowance.max_output_tokens in (2200, 2201)


def test_the_wait_before_a_retry_grows_and_the_server_has_the_last_word() -> None:
    chance = random.Random(1)
    waits = [retry.delay(NetworkFailure("x"), tries, chance) for tries in range(1, 8)]

    assert all(wait is not None for wait in waits)
    assert [int(wait or 0) for wait in waits][:2] == [2, 4]
    assert all(wait is not None and wait <= 37.5 for wait in waits)
    assert retry.delay(NetworkFailure("x"), retry.MAX_TRIES, chance) is None
    assert retry.delay(RateLimited("x", retry_after=7), 1, chance) == 7
    assert retry.delay(Unavailable("x", retry_after=0), 1, chance) == 0
    assert retry.delay(AuthFailed("x"), 1, chance) is None


def check(name: str, *, passed: bool) -> CheckResult:
    return CheckResult(
        session_id="s", attempt_id="a", name=name, kind="check", passed=passed, reason="exit code 1"
    )


@pytest.mark.parametrize(
    ("ending", "checks", "refused", "has_patch", "expected"),
    [
        (Answered("ok"), [], None, False, ("passed", None)),
        (Answered(""), [], None, False, ("failed", "empty")),
        (Answered(""), [], None, True, ("passed", None)),
        (Answered("ok"), [check("t", passed=False)], None, True, ("failed", "check:t")),
        (Answered("ok"), [check("t", passed=True)], "too big", True, ("failed", "patch")),
        (Stopped("max_steps", ""), [], None, True, ("failed", "max_steps")),
        (Broke("git", "", "infra"), [], None, False, ("errored", "git")),
        (Interrupted(), [], None, True, ("cancelled", "interrupted")),
        (Interrupted("max_cost"), [], None, True, ("failed", "max_cost")),
        (Interrupted("max_failures"), [], None, True, ("cancelled", "max_failures")),
    ],
)
def test_the_verdict_names_the_first_thing_that_is_wrong(
    ending: Answered | Stopped | Broke | Interrupted,
    checks: list[CheckResult],
    refused: str | None,
    has_patch: bool,
    expected: tuple[str, str | None],
) -> None:
    verdict = judge(ending, checks, patch_refused=refused, has_patch=has_patch)

    assert (verdict.status, verdict.reason) == expected
