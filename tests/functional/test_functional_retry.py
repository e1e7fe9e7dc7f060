"""A recipe's own retry through the command line: attempts, their files, checks and limits."""

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from functional_cli import FORMS, MAIN_RECIPE, Form, Job, Outcome, Ran, carry_out
from wire import Call, Reply, Say, Tries
from wire.script import Script

STOCK = {"file_path": "shop/stock.py"}
WRONG = Call("write", {**STOCK, "content": "STOCK = 'wrong'\n"})
RIGHT = Call("write", {**STOCK, "content": "STOCK = 'right'\n"})
READ = Call("read", STOCK)
CHECK = "cat shop/stock.py; grep -q right shop/stock.py"
RETRY: Mapping[str, Any] = {"max_retries": 2, "checks": [{"type": "shell", "command": CHECK}]}
DONE = Reply(Say("Stock is kept."))


def recipe(retry: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        **dict.fromkeys(MAIN_RECIPE),
        "prompt": "Keep stock.",
        "permissions": {"edit": {"shop/**": "allow"}},
        "retry": {**RETRY, **retry},
        **more,
    }


ANEW: Script = (Tries(Reply(WRONG), Reply(READ, RIGHT)), DONE)
"""The second conversation does it."""
FRESH: Script = (Tries(Reply(WRONG), Reply(RIGHT)), DONE)
"""It need not read the file first, as there is none."""
ON: Script = (Reply(WRONG), DONE, Reply(READ, RIGHT), Reply(Say("Now it is right.")))
"""The same conversation does it."""
NEVER: Script = (Reply(WRONG), DONE)

JOBS: Mapping[str, tuple[Script, dict[str, Any]]] = {
    "goose": (ANEW, recipe({"on_failure": "echo cleaned >> shop/log.txt"})),
    "never": ((Tries(Reply(WRONG), Reply(READ, WRONG)), DONE), recipe({})),
    "none": (NEVER, recipe({"max_retries": 0})),
    "reset": (FRESH, recipe({"reset": True}, workspace={"setup": ["echo x >> setup.log"]})),
    "feedback": (ON, recipe({"feedback": True, "on_failure": "echo tidied; false"})),
    "feedback-reset": (
        (Reply(WRONG), DONE, Reply(RIGHT), DONE),
        recipe({"feedback": True, "reset": True}),
    ),
    "own-checks": (
        ON,
        recipe(
            {"feedback": True, "checks": []}, checks=[{"name": "stock", "run": CHECK}]
        ),
    ),
    "own-checks-anew": (
        NEVER, recipe({"checks": []}, checks=[{"name": "stock", "run": CHECK}])
    ),
    "cleaning-fails": (NEVER, recipe({"on_failure": "echo no broom; exit 7"})),
    "steps": (ON, recipe({"feedback": True}, limits={"steps": 3})),
    "steps-used-up": (NEVER, recipe({}, limits={"steps": 3})),
    "tokens": (NEVER, recipe({}, limits={"tokens": 9500, "output_tokens": 100})),
    "not-asked": (NEVER, recipe({"checks": [{"type": "shell", "command": "true"}]},
                                expect={"max_files": 0})),
    "denied": ((Reply(Call("bash", {"command": "rm -r ."})),), recipe({}, on_denial="fail")),
    "slow-check": (NEVER, recipe({"timeout_seconds": 0.3, "checks": [
        {"type": "shell", "command": "sleep 60"}], "max_retries": 1})),
    "time": (NEVER, recipe({"on_failure": "sleep 60"}, limits={"seconds": 4})),
}  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [
        Job(f"{name}.{form}", script, form, what)
        for name, (script, what) in JOBS.items()
        for form in (FORMS if name in ("goose", "feedback") else FORMS[:1])
    ]
    folder = tmp_path_factory.mktemp("retry")
    return carry_out(folder, jobs, "-j", "4", "--junit-dialect", "surefire")


def of(ran: Ran, name: str, form: Form = "anthropic") -> Outcome:
    return ran.session(f"{name}.{form}")


def endings(session: Outcome) -> list[tuple[str, str | None]]:
    return [(row["status"], row["reason"]) for row in session.attempts]


def folders(session: Outcome) -> list[Path]:
    return sorted(session.folder.parent.iterdir())


def users(session: Outcome, request: int) -> str:
    """What the user's side has said in a request, without tool results."""
    messages = session.requests[request].json["messages"]
    return json.dumps([message for message in messages if message["role"] == "user"])


@pytest.mark.parametrize("form", FORMS)
def test_gooses_form_begins_the_conversation_again_until_the_check_holds(
    ran: Ran, form: Form
) -> None:
    session = of(ran, "goose", form)

    assert (session.status, session.reason, session.verdict) == ("passed", None, None)
    assert endings(session) == [("failed", "check:retry-1"), ("passed", None)]
    assert (session.row["attempts"], session.row["flaky"]) == (2, False)
    first, _, third, _ = session.requests
    assert [m["role"] for m in third.json["messages"]] == [
        m["role"] for m in first.json["messages"]
    ]
    assert third.body == first.body, "what the first attempt did is not told"
    assert [call["step"] for call in session.calls] == [1, 2, 3, 4]
    assert session.row["steps"] == 4


def test_every_attempt_keeps_its_files_and_the_patches_go_from_the_base(ran: Ran) -> None:
    session = of(ran, "goose")

    assert [folder.name for folder in folders(session)] == ["attempt-1", "attempt-2"]
    for folder in folders(session):
        assert {"answer.md", "change.patch", "transcript.md", "outputs"} <= {
            path.name for path in folder.iterdir()
        }
    first, second = [(f / "change.patch").read_text(encoding="utf-8") for f in folders(session)]
    assert "+STOCK = 'wrong'" in first
    assert "log.txt" not in first, "it was taken before the command ran"
    assert "+STOCK = 'right'" in second
    assert "wrong" not in second
    assert "+cleaned" in second, "goose leaves the workspace as it is"
    assert [row["attempt_id"] for row in session.attempts] == [
        next(p["attempt_id"] for p in session.patches if p["bytes"] == len(patch.encode()))
        for patch in (first, second)
    ]


def test_checks_of_retry_and_on_failure_are_rows_like_other_checks(ran: Ran) -> None:
    session = of(ran, "goose")
    first, second = (row["attempt_id"] for row in session.attempts)

    rows = {
        (row["attempt_id"], row["name"]): (row["kind"], row["passed"], row["exit_code"])
        for row in session.checks
    }
    assert rows == {
        (first, "retry-1"): ("check", False, 1),
        (first, "on_failure"): ("check", True, 0),
        (second, "retry-1"): ("check", True, 0),
    }


def test_transcripts_tell_each_attempt_and_the_last_one_all(ran: Ran) -> None:
    first, second = [
        (folder / "transcript.md").read_text(encoding="utf-8")
        for folder in folders(of(ran, "goose"))
    ]
    assert "## Attempt 1" in first
    assert "## Attempt 2" not in first
    assert second.index("## Attempt 1") < second.index("## Attempt 2")


def test_after_the_last_retry_the_session_has_failed_as_its_last_attempt_did(ran: Ran) -> None:
    session = of(ran, "never")

    assert endings(session) == [("failed", "check:retry-1")] * 3
    assert (session.status, session.reason) == ("failed", "check:retry-1")
    assert session.verdict == ("failure", "check.retry-1")
    reruns = session.case.findall("rerunFailure")
    assert [(rerun.attrib["type"], rerun.findtext("stackTrace") != "") for rerun in reruns] == [
        ("check.retry-1", True)
    ] * 2
    assert "exit code 1" in reruns[0].attrib["message"]
    assert endings(of(ran, "none")) == [("failed", "check:retry-1")]


def test_a_retry_that_helped_is_no_flaky_test(ran: Ran) -> None:
    assert of(ran, "goose").case.findall("flakyFailure") == []


def test_reset_gives_each_attempt_the_base_and_sets_it_up_again(ran: Ran) -> None:
    session = of(ran, "reset")

    assert endings(session) == [("failed", "check:retry-1"), ("passed", None)]
    patch = (session.folder / "change.patch").read_text(encoding="utf-8")
    assert "+STOCK = 'right'" in patch
    assert patch.count("+x\n") == 1, "set up once in this workspace"


@pytest.mark.parametrize("form", FORMS)
def test_feedback_goes_on_with_what_failed(ran: Ran, form: Form) -> None:
    session = of(ran, "feedback", form)

    assert endings(session) == [("failed", "check:retry-1"), ("passed", None)]
    assert len(session.requests) == 4
    told = users(session, 2)
    assert "Keep stock." in told, "it is the same conversation"
    for words in ("retry-1", "grep -q right", "exit code 1", "STOCK = 'wrong'", "tidied"):
        assert words in told
    assert session.patch is not None
    assert b"+STOCK = 'right'" in session.patch
    (note,) = (
        event["part"]["body"]
        for event in ran.events_of(f"feedback.{form}", "part_created")
        if "does not hold yet" in event["part"]["body"].get("text", "")
    )
    assert note["synthetic"] is True


@pytest.mark.parametrize("form", FORMS)
def test_feedback_keeps_the_prefix_of_the_requests(ran: Ran, form: Form) -> None:
    bodies = [seen.json["messages"] for seen in of(ran, "feedback", form).requests]
    plain = json.loads(json.dumps(bodies).replace(', "cache_control": {"type": "ephemeral"}', ""))
    for earlier, later in pairwise(plain):
        assert later[: len(earlier)] == earlier


def test_feedback_and_reset_say_that_the_changes_are_gone(ran: Ran) -> None:
    session = of(ran, "feedback-reset")

    assert endings(session) == [("failed", "check:retry-1"), ("passed", None)]
    assert "put back to its base" in users(session, 2)
    assert {tool["status"] for tool in session.tools} == {"completed"}


def test_the_recipes_own_checks_ask_for_another_attempt_only_with_feedback(ran: Ran) -> None:
    assert endings(of(ran, "own-checks")) == [("failed", "check:stock"), ("passed", None)]
    assert "stock (`cat" in users(of(ran, "own-checks"), 2)
    assert endings(of(ran, "own-checks-anew")) == [("failed", "check:stock")]


def test_nothing_follows_when_cleaning_up_fails(ran: Ran) -> None:
    session = of(ran, "cleaning-fails")

    assert endings(session) == [("failed", "check:retry-1")]
    notices = [e["text"] for e in ran.events_of("cleaning-fails.anthropic", "notice")]
    assert any("on_failure: exit code 7" in text for text in notices)


def test_limits_go_over_all_attempts(ran: Ran) -> None:
    steps = of(ran, "steps")
    assert endings(steps) == [("failed", "check:retry-1"), ("failed", "max_steps")]
    assert steps.row["steps"] == 3

    used_up = of(ran, "steps-used-up")
    assert endings(used_up) == [("failed", "check:retry-1"), ("failed", "max_steps")]

    tokens = of(ran, "tokens")
    assert tokens.reason in ("max_tokens", "check:retry-1")
    total = sum(call["input_tokens"] + call["output_tokens"] for call in tokens.calls)
    assert total <= 9500


def test_what_is_no_failing_check_asks_for_no_other_attempt(ran: Ran) -> None:
    assert endings(of(ran, "not-asked")) == [("failed", "expect:max_files")]
    assert endings(of(ran, "denied")) == [("failed", "permission")]


def test_a_check_that_takes_too_long_has_failed(ran: Ran) -> None:
    session = of(ran, "slow-check")

    assert endings(session) == [("failed", "check:retry-1")] * 2
    assert "timed out after 0.3 s" in session.detail


def test_the_session_s_time_ends_the_waiting_and_the_attempt_keeps_its_own_reason(
    ran: Ran,
) -> None:
    assert endings(of(ran, "time")) == [("failed", "check:retry-1")]


def test_the_summary_lists_the_earlier_attempts(ran: Ran) -> None:
    summary = (ran.folder / "summary.md").read_text(encoding="utf-8")

    assert ran.exit_code == 1
    assert "- attempt 1: check `retry-1` failed: `exit code 1`" in summary
