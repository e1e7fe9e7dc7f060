"""Answers by schema through the command line: corrected, first or last, or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from functional_cli import FORMS, MAIN_RECIPE, READ, Form, Job, Ran, carry_out
from wire import Call, Refuse, Reply, Say, Tries
from wire.script import Script

SCHEMA = {
    "type": "object",
    "properties": {
        "verdict": {"enum": ["approve", "refuse"]},
        "lines": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["verdict"],
    "additionalProperties": False,
}
GOOD = {"verdict": "approve", "lines": [1]}
WRITE = Call("write", {"file_path": "shop/stock.py", "content": "STOCK = 1\n"})


def final(**arguments: Any) -> Call:
    return Call("final_output", arguments)


ANSWER = Reply(final(**GOOD))
WRONG = [Reply(final(verdict="maybe", lines=[1, "x"], round=n)) for n in range(20)]
NO_NAMES = Refuse(400, {"error": {"message": "Invalid tool_choice type: 'object'"}})

JOBS: dict[str, tuple[Script, dict[str, Any]]] = {
    "one-step": ((ANSWER,), {"limits": {"steps": 1}}),
    "last-step": ((Reply(READ), ANSWER), {"limits": {"steps": 2}}),
    "last-step-busy": (
        (Reply(READ), Reply(WRITE, final(**GOOD))), {"limits": {"steps": 2}}
    ),
    "last-step-prose": ((Reply(READ), Reply(Say("It is fine."))), {"limits": {"steps": 2}}),
    "last-step-wrong": (WRONG, {"limits": {"steps": 3}}),
    "no-names": (
        (Reply(READ), Tries(NO_NAMES, ANSWER)), {"limits": {"steps": 2}}
    ),
    "work-then-answer": ((Reply(WRITE, final(**GOOD)),), {}),
    "answer-then-work": ((Reply(final(**GOOD), WRITE),), {}),
    "two-answers": ((Reply(final(**GOOD), final(verdict="refuse")),), {}),
    "corrected": ((WRONG[0], Reply(final(verdict="refuse"))), {}),
    "broken-json": ((Reply(Call("final_output", '{"verdict": "app')), ANSWER), {}),
    "always-wrong": (WRONG, {}),
    "denied-beside": (
        (Reply(final(**GOOD), Call("bash", {"command": "ls"})),), {"on_denial": "fail"}
    ),
    "tool-calls-used-up": ((Reply(READ), ANSWER), {"limits": {"tool_calls": 1}}),
    "retried": (
        (Reply(final(verdict="refuse")), Reply(WRITE, final(**GOOD))),
        {"retry": {"max_retries": 1, "feedback": True, "checks": [
            {"type": "shell", "command": "test -e shop/stock.py"}]}},
    ),
    "retried-prose": (
        (ANSWER, *[Reply(Say("Was that not enough?"))] * 9),
        {"retry": {"max_retries": 1, "feedback": True, "checks": [
            {"type": "shell", "command": "false"}]}},
    ),
}  # fmt: skip
BOTH = ("one-step", "last-step", "last-step-busy", "no-names", "corrected", "retried")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    bare = {
        **dict.fromkeys(MAIN_RECIPE),
        "prompt": "Review the shop.",
        "permissions": {"edit": {"shop/**": "allow"}},
        "response": {"json_schema": SCHEMA},
    }
    jobs = [
        Job(f"{name}.{form}", script, form, {**bare, **more})
        for name, (script, more) in JOBS.items()
        for form in (FORMS if name in BOTH else FORMS[:1])
    ]
    return carry_out(tmp_path_factory.mktemp("answers"), jobs, "-j", "4")


def answer(folder: Path) -> Any:
    return json.loads((folder / "answer.json").read_text(encoding="utf-8"))


def chosen(request: Any) -> Any:
    return request.json.get("tool_choice")


NAMED = {
    "anthropic": {"type": "tool", "name": "final_output"},
    "openai-chat": {"type": "function", "function": {"name": "final_output"}},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "requests"), [("one-step", 1), ("last-step", 2)])
def test_the_last_step_may_still_give_the_answer_and_nothing_else(
    ran: Ran, name: str, requests: int, form: Form
) -> None:
    session = ran.session(f"{name}.{form}")

    assert (session.status, session.reason) == ("passed", None)
    assert answer(session.folder) == GOOD
    assert [chosen(seen) for seen in session.requests] == [
        *[None] * (requests - 1),
        NAMED[form],
    ]


@pytest.mark.parametrize("form", FORMS)
def test_other_calls_of_the_last_step_are_refused(ran: Ran, form: Form) -> None:
    session = ran.session(f"last-step-busy.{form}")

    assert session.status == "passed"
    assert [(tool["tool"], tool["status"]) for tool in session.tools] == [
        ("read", "completed"),
        ("write", "denied"),
        ("final_output", "completed"),
    ]
    assert session.patch is None
    assert "final_output" in json.dumps(session.requests[-1].json["messages"][-1])


@pytest.mark.parametrize("form", FORMS)
def test_a_server_that_knows_no_choice_by_name_is_asked_without(ran: Ran, form: Form) -> None:
    session = ran.session(f"no-names.{form}")

    assert session.status == "passed"
    assert [chosen(seen) for seen in session.requests] == [None, NAMED[form], None]
    assert [call["error_kind"] for call in session.calls] == [None, "model", None]


def test_prose_in_the_last_step_is_no_answer(ran: Ran) -> None:
    session = ran.session("last-step-prose.anthropic")

    assert (session.reason, session.verdict) == ("max_steps", ("failure", "limit.steps"))


@pytest.mark.parametrize(("name", "requests"), [("last-step-wrong", 3), ("always-wrong", 8)])
def test_an_answer_that_never_fits_fails_and_the_last_one_is_kept(
    ran: Ran, name: str, requests: int
) -> None:
    session = ran.session(f"{name}.anthropic")

    assert (session.reason, session.verdict) == ("schema", ("failure", "agent.schema"))
    assert len(session.requests) == requests
    assert "verdict" in session.detail
    kept = json.loads((session.folder / "answer.md").read_text(encoding="utf-8"))
    assert kept == {"verdict": "maybe", "lines": [1, "x"], "round": requests - 1}
    assert not (session.folder / "answer.json").exists()
    assert session.attempts[0]["answer"] is not None


@pytest.mark.parametrize("form", FORMS)
def test_a_correction_names_the_path_and_what_was_expected(ran: Ran, form: Form) -> None:
    session = ran.session(f"corrected.{form}")

    assert answer(session.folder) == {"verdict": "refuse"}
    error = session.tools[0]["error"]
    assert "verdict: 'maybe' is not one of ['approve', 'refuse']" in error
    assert "lines.1: 'x' is not of type 'integer'" in error
    assert "'round' was unexpected" in error
    assert "is not one of" in json.dumps(session.requests[1].json["messages"])


def test_arguments_that_are_no_json_are_corrected_too(ran: Ran) -> None:
    session = ran.session("broken-json.anthropic")

    assert answer(session.folder) == GOOD
    assert [tool["status"] for tool in session.tools] == ["error", "completed"]


@pytest.mark.parametrize("name", ["work-then-answer", "answer-then-work"])
def test_all_calls_beside_the_answer_are_carried_out_in_order_and_nothing_more_is_asked(
    ran: Ran, name: str
) -> None:
    session = ran.session(f"{name}.anthropic")

    assert session.status == "passed"
    assert len(session.requests) == 1
    assert answer(session.folder) == GOOD
    order = ["write", "final_output"]
    assert [tool["tool"] for tool in session.tools] == (
        order if name == "work-then-answer" else order[::-1]
    )
    assert session.patch is not None


def test_the_first_valid_answer_counts(ran: Ran) -> None:
    session = ran.session("two-answers.anthropic")

    assert answer(session.folder) == GOOD
    assert [tool["status"] for tool in session.tools] == ["completed", "error"]


def test_a_denial_beside_the_answer_still_fails_where_the_recipe_says_so(ran: Ran) -> None:
    assert ran.session("denied-beside.anthropic").reason == "permission"


def test_the_answer_is_no_tool_call_for_the_limit(ran: Ran) -> None:
    assert ran.session("tool-calls-used-up.anthropic").status == "passed"


@pytest.mark.parametrize("form", FORMS)
def test_another_attempt_needs_another_answer(ran: Ran, form: Form) -> None:
    session = ran.session(f"retried.{form}")

    assert [row["status"] for row in session.attempts] == ["failed", "passed"]
    first, second = sorted(session.folder.parent.iterdir())
    assert (answer(first), answer(second)) == ({"verdict": "refuse"}, GOOD)
    assert "finish again by calling `final_output`" in json.dumps(session.requests[1].json)
    prose = ran.session("retried-prose.anthropic")
    assert [row["reason"] for row in prose.attempts] == ["check:retry-1", "schema"]
