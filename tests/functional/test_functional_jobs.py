"""Background children through the command line: the board, their results, their ends."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from functional_children import (
    Family,
    FamilyRun,
    begins_like,
    carry_out,
    results_in,
    texts_in,
)
from functional_cli import FORMS
from wire import Call, Raw, Reply, Say, Seen

WORKER: dict[str, Any] = {"mode": "subagent", "model": "wire/worker", "prompt": "You work."}
SHELL = {"bash": {"*": "allow"}}
WAIT_FOR_WORKER = "for i in $(seq 200); do test -e worker.txt && exit 0; sleep 0.05; done; exit 1"
WAIT_FOR_LEAD = "touch worker.txt; " + WAIT_FOR_WORKER.replace("worker", "lead")


def background(description: str = "work quietly", agent: str = "worker") -> Call:
    arguments = {"description": description, "prompt": "Work.", "agent": agent}
    return Call("task", arguments | {"background": True})


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


def permissions(*agents: str) -> dict[str, Any]:
    return {"permissions": {"task": dict.fromkeys(agents, "allow"), **SHELL}}


@pytest.fixture(scope="module", params=FORMS)
def worked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FamilyRun:
    """The worker waits for the lead's command and the lead's for the worker's: both at once."""
    family = Family(
        form=request.param,
        agents={"worker": WORKER},
        recipe=permissions("worker"),
        models={
            "lead": [
                Reply(background()),
                Reply(bash(WAIT_FOR_WORKER)),
                Reply(bash("echo still at it")),
                Reply(bash("touch lead.txt")),
                Reply(Say("I am done but for the worker.")),
                Reply(Say("All is done.")),
            ],
            "worker": [Reply(bash(WAIT_FOR_LEAD)), Reply(Say("The work is done."))],
        },
    )
    return carry_out(tmp_path_factory.mktemp("worked"), family)


def test_a_background_child_works_while_its_parent_does(worked: FamilyRun) -> None:
    assert worked.exit_code == 0, worked.stderr
    commands = worked.rows("SELECT exit_code FROM tool_call WHERE tool = 'bash'")
    assert [row["exit_code"] for row in commands] == [0] * 4
    (started,) = results_in(worked.requests_of("lead")[1])
    assert started.startswith(f"session: {worked.children[0]['session_id']}\nstate: running")


def test_a_session_does_not_end_before_its_jobs_have_told_their_results(worked: FamilyRun) -> None:
    answer = worked.row("SELECT answer FROM report_session")["answer"]
    told = [
        seen for seen in worked.requests_of("lead") if "<job-result>" in " ".join(texts_in(seen))
    ]

    assert answer == "All is done."
    assert len(told) == 1
    words = " ".join(texts_in(told[0]))
    assert "state: completed\n\nThe work is done." in words
    assert worked.children[0]["session_id"] in words
    job = worked.row("SELECT * FROM job")
    assert (job["state"], job["agent"], job["description"]) == (
        "completed",
        "worker",
        "work quietly",
    )
    assert job["child_session_id"] == worked.children[0]["session_id"]
    assert job["finished_at"] > job["started_at"]


def test_the_board_is_shown_when_a_state_changed_and_only_then(worked: FamilyRun) -> None:
    boards = worked.rows(
        "SELECT json_extract_string(body, '$.text') AS text, message_id FROM part "
        "WHERE type = 'text' AND json_extract_string(body, '$.text') LIKE '<background-jobs>%' "
        "AND CAST(json_extract(body, '$.synthetic') AS BOOLEAN) ORDER BY part_id"
    )

    child = worked.children[0]["session_id"]
    line = f"- {child} worker, 'work quietly'"
    assert [row["text"] for row in boards] == [
        f"<background-jobs>\n{line}: {state}\n</background-jobs>"
        for state in ("running", "completed")
    ]
    first = worked.requests_of("lead")[1]
    assert f"{line}: running" in " ".join(texts_in(first))
    third = worked.requests_of("lead")[2]
    assert "<background-jobs>" not in json.dumps(third.json["messages"][-1])


def test_the_board_leaves_the_prefix_alone(worked: FamilyRun) -> None:
    for model in ("lead", "worker"):
        requests = worked.requests_of(model)
        assert len(requests) >= 2
        for earlier, later in pairwise(requests):
            assert begins_like(later, earlier)


def test_jobs_that_fail_are_results_too_and_a_limit_ends_those_that_run(tmp_path: Path) -> None:
    agents = {name: WORKER | {"model": f"wire/{name}"} for name in ("broken", "endless", "worker")}
    agents["broken"]["steps"] = 1
    ran = carry_out(
        tmp_path,
        Family(
            agents=agents,
            recipe=permissions(*agents) | {"limits": {"steps": 3}},
            models={
                "lead": [
                    Reply(background(agent="broken"), background(agent="endless")),
                    Reply(bash("for i in 1 2 3 4 5; do sleep 0.1; done")),
                    Reply(Say("Out of steps.")),
                ],
                "broken": [Reply(bash("true"))],
                "endless": [Reply(bash("sleep 60"))],
                "worker": [],
            },
        ),
    )

    assert ran.top["reason"] == "max_steps"
    states = {row["agent"]: row["state"] for row in ran.rows("SELECT agent, state FROM job")}
    assert states == {"broken": "error", "endless": "cancelled"}
    ends = {child["agent"]: (child["status"], child["reason"]) for child in ran.children}
    assert ends == {
        "broken": ("failed", "max_steps"),
        "endless": ("cancelled", "parent_stopped"),
    }
    words = " ".join(texts_in(ran.requests_of("lead")[2]))
    assert "state: error (max_steps" in words


def test_the_limit_of_time_ends_the_waiting_for_jobs(tmp_path: Path) -> None:
    ran = carry_out(
        tmp_path,
        Family(
            agents={"worker": WORKER},
            recipe=permissions("worker") | {"limits": {"seconds": 4}},
            models={
                "lead": [Reply(background()), Reply(Say("I wait."))],
                "worker": [Reply(bash("sleep 60"))],
            },
        ),
    )

    assert (ran.top["status"], ran.top["reason"]) == ("failed", "max_time")
    assert (ran.children[0]["status"], ran.children[0]["reason"]) == ("cancelled", "parent_stopped")
    assert ran.row("SELECT state FROM job")["state"] == "cancelled"
    assert ran.exit_code == 1


def test_a_signal_ends_children_of_every_kind_in_good_order(tmp_path: Path) -> None:
    agents = {name: WORKER | {"model": f"wire/{name}"} for name in ("quiet", "middle", "deep")}
    seen_models: set[str] = set()

    def both_at_work(seen: Seen) -> bool:
        seen_models.add(seen.model)
        return {"quiet", "deep"} <= seen_models

    errand = {"description": "go deeper", "prompt": "Go."}
    ran = carry_out(
        tmp_path,
        Family(
            agents=agents,
            recipe=permissions(*agents),
            models={
                "lead": [
                    Reply(background(agent="quiet"), Call("task", errand | {"agent": "middle"}))
                ],
                "quiet": [Reply(bash("sleep 60"))],
                "middle": [Reply(Call("task", errand | {"agent": "deep"}))],
                "deep": lambda _: Raw(hang=True),
            },
            stop_when=both_at_work,
        ),
    )

    assert ran.exit_code == 130
    assert (ran.top["status"], ran.top["reason"]) == ("cancelled", "interrupted")
    ends = {child["agent"]: (child["status"], child["reason"]) for child in ran.children}
    assert ends == dict.fromkeys(agents, ("cancelled", "interrupted"))
    for table, end in (
        ("attempt", "status"),
        ("model_call", "duration_s"),
        ("tool_call", "status"),
    ):
        assert not ran.rows(f"SELECT * FROM {table} WHERE {end} IS NULL"), table
    tools = {
        row["tool"] for row in ran.rows("SELECT * FROM tool_call WHERE status = 'interrupted'")
    }
    assert "task" in tools
    assert ran.row("SELECT state FROM job")["state"] == "cancelled"
    assert "Traceback" not in ran.stderr
