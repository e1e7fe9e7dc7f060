"""A list of models through the command line: who is asked when, who answered, who paid."""

import json
from typing import Any

import pytest

from functional_cli import MAIN_RECIPE, READ, Job, Outcome, Ran, carry_out
from wire import Refuse, Reply, Say
from wire.script import Script

ANSWER: Script = (Reply(READ), Reply(Say("It is fine.")))
NO_CREDIT = Refuse(429, {"error": {"code": "insufficient_quota", "message": "no credit left"}})
SOON = {"retry-after-ms": "5"}
DOWN = Refuse(529, {"error": {"type": "overloaded_error", "message": "overloaded"}}, SOON)
PRICES = {"input": 1.0, "output": 1.0}

PROVIDERS: dict[str, tuple[Script, dict[str, Any], bool]] = {
    "good": (ANSWER, {}, True),
    "poor": ((NO_CREDIT,), {}, True),
    "down": ((DOWN,), {}, True),
    "locked": (ANSWER, {"api_key": "sk-wrong-0123456789"}, True),
    "unknown": (ANSWER, {}, False),
    "later": ((Reply(READ), NO_CREDIT), {}, True),
}
"""Provider and model of that name: what it answers, its settings, whether the server knows it."""
HOPELESS = ("locked", "poor")
"""Each list has its own of these: two lists that ask one account would close it for a third."""

LISTS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "first": (["good", "poor"], {}),
    "no-credit": (["poor", "good"], {}),
    "wrong-key": (["locked", "good"], {}),
    "not-there": (["unknown", "good"], {}),
    "overloaded": (["down", "good"], {}),
    "third": (["locked", "poor", "good"], {}),
    "none": (["locked", "poor"], {}),
    "too-late": (["later", "good"], {}),
    "retry": (
        ["locked", "good"],
        {"retry": {"max_retries": 1, "checks": [{"type": "shell", "command": "false"}]}},
    ),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    bare = {**dict.fromkeys(MAIN_RECIPE), "prompt": "Look at the shop."}
    priced = {"context": 200_000, "output": 8000, "cost": PRICES}
    jobs = [
        Job(own, script, "openai-chat", bare, provider, priced, known)
        for name, (script, provider, known) in PROVIDERS.items()
        for own in dict.fromkeys(_own(name, listed) for listed in LISTS if name in LISTS[listed][0])
    ]
    jobs += [
        Job(
            f"list.{name}",
            ANSWER,
            "openai-chat",
            {
                **bare,
                "prompt": f"Look at the shop ({name}).",
                "model": [f"{_own(word, name)}/{_own(word, name)}" for word in words],
                **more,
            },
        )
        for name, (words, more) in LISTS.items()
    ]
    return carry_out(tmp_path_factory.mktemp("fallbacks"), jobs, "-j", "4")


def _own(name: str, listed: str) -> str:
    return f"{name}-{listed}" if name in HOPELESS else name


def of(ran: Ran, name: str) -> Outcome:
    return ran.session(f"list.{name}")


def asked(session: Outcome) -> list[tuple[str, str | None]]:
    calls = session.calls
    return [(call["request_model"].partition("-")[0], call["error_kind"]) for call in calls]


GOOD = [("good", None), ("good", None)]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("first", GOOD),
        ("no-credit", [("poor", "quota"), *GOOD]),
        ("wrong-key", [("locked", "auth"), *GOOD]),
        ("not-there", [("unknown", "model"), *GOOD]),
        ("overloaded", [*[("down", "unavailable")] * 8, *GOOD]),
        ("third", [("locked", "auth"), ("poor", "quota"), *GOOD]),
    ],
)
def test_the_next_model_is_asked_when_one_has_failed_for_good(
    ran: Ran, name: str, calls: list[tuple[str, str | None]]
) -> None:
    session = of(ran, name)

    assert (session.status, session.reason) == ("passed", None)
    assert asked(session) == calls
    assert [call["try"] for call in session.calls] == [*range(1, len(calls)), 1]
    assert session.row["model"] == "good/good"
    assert session.row["steps"] == 2
    assert session.row["cost_usd"] is not None


def test_each_change_of_model_is_told(ran: Ran) -> None:
    told = [event["text"] for event in ran.events_of("list.third", "notice")]

    assert [text.partition(" failed")[0] for text in told] == [
        "locked-third/locked-third",
        "poor-third/poor-third",
    ]
    assert "no credit left" in told[1]
    assert told[1].endswith("good/good goes on")
    assert [event["text"] for event in ran.events_of("list.first", "notice")] == []


def test_messages_name_the_model_that_said_them(ran: Ran) -> None:
    said = [
        (message["model"], message["error"])
        for message in of(ran, "third").messages
        if message["role"] == "assistant"
    ]
    assert said == [
        ("locked-third/locked-third", "auth"),
        ("poor-third/poor-third", "quota"),
        ("good/good", None),
        ("good/good", None),
    ]


def test_when_all_have_failed_the_last_error_is_the_sessions(ran: Ran) -> None:
    session = of(ran, "none")

    assert (session.status, session.reason) == ("errored", "provider_quota")
    assert asked(session) == [("locked", "auth"), ("poor", "quota")]
    assert session.row["model"] == "locked-none/locked-none", (
        "nobody answered: the first one's name stays"
    )


def test_a_model_that_has_done_something_is_not_replaced(ran: Ran) -> None:
    session = of(ran, "too-late")

    assert (session.status, session.reason) == ("errored", "provider_quota")
    assert asked(session) == [("later", None), ("later", "quota")]
    assert session.row["model"] == "later/later"


def test_another_attempt_asks_the_model_that_answered(ran: Ran) -> None:
    session = of(ran, "retry")

    assert len(session.attempts) == 2
    assert asked(session) == [("locked", "auth"), *GOOD, *GOOD]


def test_the_plan_names_the_fallbacks(ran: Ran) -> None:
    lock = json.loads((ran.folder / "lock.json").read_text(encoding="utf-8"))

    assert "good/good" in json.dumps(lock)
