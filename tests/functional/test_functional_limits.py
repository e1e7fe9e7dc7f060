"""Limits through the command line: told in time, lowered to fit, never overrun, true at the end."""

import json
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from functional_cli import FORMS, KEY, PRICES, Bench, Form, Job, Ran, carry_out
from wire import Call, Reply, Say, Seen, Usage, serve
from wire.script import Answer

NOTE = "More than 80% of what this session may use is used up"
RECIPE = {
    "prompt": "Keep a diary.",
    "permissions": {"edit": {"diary/**": "allow"}},
    "checks": None,
    "expect": None,
    "patch": None,
}


def said_of(seen: Seen) -> str:
    return json.dumps(seen.json["messages"], ensure_ascii=False)


def most_of(seen: Seen) -> int:
    most = seen.json.get("max_tokens") or seen.json["max_completion_tokens"]
    assert isinstance(most, int)
    return most


def entry(number: int) -> Call:
    return Call("write", {"file_path": f"diary/{number}.md", "content": f"Day {number}.\n"})


def diarist(seen: Seen) -> Answer:
    """Writes on until it is told to wrap up."""
    usage = Usage(input=3000, output=100)
    if NOTE in said_of(seen):
        return Reply(Say("I was told to end."), usage=usage)
    return Reply(entry(seen.step), usage=usage)


def limited(**limits: Any) -> dict[str, Any]:
    return RECIPE | {"limits": {"output_tokens": 1000} | limits}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    # 3,100 tokens a step, and 0.01275 USD at most: 3,000 at 3.75 and 100 at 15 per million.
    jobs = [
        job
        for form in FORMS
        for job in (
            Job(f"tokens.{form}", diarist, form, limited(tokens=30_000)),
            Job(f"cost.{form}", diarist, form, limited(cost_usd=0.12)),
        )
    ]
    return carry_out(tmp_path_factory.mktemp("told"), jobs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", ["tokens", "cost"])
def test_at_four_fifths_the_model_is_told_once_and_can_end_well(
    told: Ran, what: str, form: Form
) -> None:
    session = told.session(f"{what}.{form}")

    assert (session.status, session.reason) == ("passed", None)
    assert (session.folder / "answer.md").read_text(encoding="utf-8") == "I was told to end."
    *before, last = session.requests
    assert all(NOTE not in said_of(seen) for seen in before)
    assert said_of(last).count(NOTE) == 1
    assert f"({what})" in said_of(last)
    if what == "tokens":
        used = sum(call["input_tokens"] + call["output_tokens"] for call in session.calls[:-1])
        assert 24_000 <= used < 24_000 + 3100
    else:
        spent = sum(call["cost_usd"] for call in session.calls[:-1])
        assert Decimal("0.096") <= spent < Decimal("0.096") + Decimal("0.0128")
    assert session.patch is not None


@pytest.mark.parametrize("form", FORMS)
def test_the_note_leaves_the_messages_before_it_as_they_were(told: Ran, form: Form) -> None:
    messages = [unmarked(seen.json["messages"]) for seen in told.session(f"cost.{form}").requests]

    for earlier, later in pairwise(messages):
        # In Anthropic's format the note joins the results of the last message.
        assert later[: len(earlier)] == earlier


def unmarked(value: Any) -> Any:
    """Without cache marks, which move on."""
    if isinstance(value, dict):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list) else value


def spendthrift(seen: Seen) -> Answer:
    """Writes one entry, then talks until it is cut off."""
    usage = Usage(input=len(seen.body) // 4, output=100)
    if seen.step < 1:
        return Reply(entry(seen.step), usage=usage)
    usage = Usage(input=len(seen.body) // 4, output=most_of(seen))
    stop = "max_tokens" if "max_tokens" in seen.json else "length"
    return Reply(Say("and so on "), usage=usage, stop=stop)


def liar(seen: Seen) -> Answer:
    """Reports far more than any estimate could have said."""
    return Reply(entry(seen.step), usage=Usage(input=50_000, output=100))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [
        job
        for form in FORMS
        for job in (
            Job(f"output.{form}", spendthrift, form, limited(output_tokens=500)),
            Job(f"short.{form}", spendthrift, form, limited(cost_usd=0.05, output_tokens=8000)),
            Job(
                f"short-tokens.{form}",
                spendthrift,
                form,
                limited(tokens=12_000, output_tokens=8000),
            ),
            Job(f"over.{form}", liar, form, limited(tokens=40_000, cost_usd=0.1)),
        )
    ]
    return carry_out(tmp_path_factory.mktemp("ended"), jobs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("output", "output_length"),
        ("short", "max_cost"),
        ("short-tokens", "max_tokens"),
        ("over", "max_tokens"),
    ],
)
def test_every_limit_ends_the_session_failed_with_its_patch(
    ended: Ran, name: str, reason: str, form: Form
) -> None:
    assert ended.exit_code == 1
    session = ended.session(f"{name}.{form}")

    assert (session.status, session.reason) == ("failed", reason)
    assert session.patch is not None
    assert b"diary/0.md" in session.patch


@pytest.mark.parametrize("form", FORMS)
def test_no_reply_may_be_longer_than_its_limit(ended: Ran, form: Form) -> None:
    requests = ended.session(f"output.{form}").requests

    assert [most_of(seen) for seen in requests] == [500, 500]


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_is_given_the_room_that_the_money_leaves(ended: Ran, form: Form) -> None:
    session = ended.session(f"short.{form}")
    first, second = map(most_of, session.requests)
    opened = ended.events_of(f"short.{form}", "model_call_opened")
    spent = session.calls[0]["cost_usd"]

    assert 500 < first < 8000 * 15 / 36, "0.05 USD buy no 8,000 tokens of output"
    assert spent + Decimal(opened[1]["reserved_usd"]) <= Decimal("0.05")
    assert second * 15 / 1_000_000 < 0.05 - float(spent)
    assert session.row["cost_usd"] <= Decimal("0.05")
    assert "would pass the limit cost_usd (0.05" in session.detail


@pytest.mark.parametrize("form", FORMS)
def test_an_overrun_by_a_wrong_estimate_is_told(ended: Ran, form: Form) -> None:
    session = ended.session(f"over.{form}")
    notices = [event["text"] for event in ended.events_of(f"over.{form}", "notice")]

    assert len(session.calls) == 1
    over = [text for text in notices if text.startswith("a model call ")]
    assert len(over) == 2
    assert "a model call used 50100 tokens" in over[0]
    assert over[0].endswith("50100 of 40000 tokens are used")
    assert "USD are spent" in over[1]


@define
class Till:
    """A provider that charges what the vendor would, and takes all the room it is given."""

    price_in: Decimal = Decimal(PRICES["cache_write"])
    price_out: Decimal = Decimal(PRICES["output"])
    taken: Decimal = Decimal(0)
    rooms: list[int] = field(factory=list)

    def __call__(self, seen: Seen) -> Answer:
        tokens = len(seen.body) // 4
        most = most_of(seen)
        self.rooms.append(most)
        output = most if seen.step % 2 else most // 10
        self.taken += (tokens * self.price_in + output * self.price_out) / 1_000_000
        usage = Usage(input=0, cache_write_5m=tokens, output=output)
        return Reply(entry(seen.step), usage=usage)


def test_eight_sessions_that_race_for_half_a_dollar_never_take_more(tmp_path: Path) -> None:
    tills = [Till() for _ in range(16)]
    jobs = [
        Job(f"racer-{number}", till, "anthropic", limited(output_tokens=4000))
        for number, till in enumerate(tills)
    ]
    ran = carry_out(tmp_path, jobs, "-j", "8", "--max-cost", "0.50")

    costs = [call["cost_usd"] for call in ran.tables["model_call"]]
    taken = sum((till.taken for till in tills), Decimal(0))
    assert sum(costs) == taken.quantize(Decimal("1e-9"))
    assert Decimal("0.35") < taken <= Decimal("0.50")
    assert ran.exit_code == 4
    ended = {(row["status"], row["reason"]) for row in ran.tables["session"]}
    assert ended == {("failed", "max_cost"), ("skipped", "not_admitted")}
    for row in ran.tables["session"]:
        if row["status"] == "failed":
            assert ran.session(row["item_key"]).patch is not None
    # Whether a room was lowered or its money waited for is a matter of who came first.
    assert all(room <= 4000 for till in tills for room in till.rooms)


def test_a_bounded_run_needs_the_prices_of_all_its_models(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.set_up()
    done = trio.run(partial(refused, bench))

    assert done.returncode == 2
    told = done.stderr.decode()
    assert "--max-cost needs the prices of plain/plain" in told
    assert "provider.plain.models.'plain'.cost" in told


async def refused(bench: Bench) -> Any:
    async with serve([Reply(Say("never"))], key=KEY) as server:
        job = Job("plain", [], "anthropic", RECIPE, model={"context": 100_000})
        path, provider = bench.write_job(job, server.anthropic_url)
        config = bench.folder / "config.json"
        config.write_text(json.dumps({"provider": {"plain": provider}}), encoding="utf-8")
        config.chmod(0o600)
        done = await bench.run("run", str(path), "--config", str(config), "--max-cost", "1")
        assert server.requests == []
    return done
