"""Child sessions through the command line: started, bounded, told to go on, counted, shown."""

import json
import xml.etree.ElementTree as ET
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from functional_children import (
    CHILD_ID,
    Family,
    FamilyRun,
    begins_like,
    carry_out,
    results_in,
    tool_names,
    without_marks,
)
from wire import Call, Refuse, Reply, Say, Seen, Usage

HELPER: dict[str, Any] = {
    "mode": "subagent",
    "description": "Looks things up.",
    "model": "wire/helper",
    "prompt": "You are the helper of the house.",
}
WRITE = Call("write", {"file_path": "shop/stock.py", "content": "IN_STOCK = 3\n"})
EDIT_ALLOWED = {"edit": {"**": "allow"}}


def task(prompt: str = "Look it up.", agent: str = "helper", **more: Any) -> Call:
    return Call("task", {"description": "look it up", "prompt": prompt, "agent": agent, **more})


def may_task(*names: str, **more: Any) -> dict[str, Any]:
    return {"permissions": {"task": dict.fromkeys(names, "allow"), **more}}


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> FamilyRun:
    family = Family(
        agents={"helper": HELPER, "boss": {"mode": "primary", "prompt": "You lead."}},
        recipe=may_task("helper", "boss") | {"instructions": "Only for the lead."},
        models={
            "lead": [
                Reply(Say("I ask."), task(), usage=Usage(input=1000, output=100)),
                Reply(task(agent="nobody"), task(agent="boss"), task(agent="explore")),
                Reply(Say("It is on line 5."), usage=Usage(input=2000, output=100)),
            ],
            "helper": [
                Reply(
                    Call("read", {"file_path": "shop/prices.py"}),
                    usage=Usage(input=500, output=10),
                ),
                Reply(Say("Line 5 it is."), usage=Usage(input=600, output=10)),
            ],
        },
    )
    return carry_out(tmp_path_factory.mktemp("helped"), family)


def test_a_child_answers_with_its_id_and_state(helped: FamilyRun) -> None:
    assert helped.exit_code == 0, helped.stderr
    (child,) = helped.children
    (result,) = results_in(helped.requests_of("lead")[1])

    assert result == f"session: {child['session_id']}\nstate: completed\n\nLine 5 it is."


def test_a_child_is_a_session_of_its_own(helped: FamilyRun) -> None:
    (child,) = helped.children
    top = helped.top

    assert (child["parent_id"], child["depth"]) == (top["session_id"], 1)
    assert (child["agent"], child["model"]) == ("helper", "wire/helper")
    assert (child["status"], child["reason"], child["attempts"]) == ("passed", None, 1)
    assert (child["steps"], child["tool_calls"]) == (2, 1)
    for table in ("attempt", "message", "model_call", "tool_call", "permission_decision"):
        mine = f"session_id = '{child['session_id']}'"
        assert helped.row(f"SELECT count(*) AS n FROM {table} WHERE {mine}")["n"] >= 1
    assert helped.row("SELECT count(*) AS n FROM part WHERE type = 'subtask'")["n"] == 1


def test_a_child_has_its_agents_prompt_and_none_of_its_parents_words(helped: FamilyRun) -> None:
    first = helped.requests_of("helper")[0].json
    system = "\n".join(block["text"] for block in first["system"])

    assert "You are the helper of the house." in system
    assert "Only for the lead." not in system
    assert [m["role"] for m in first["messages"]] == ["user"]
    assert "Look it up." in json.dumps(first["messages"])
    assert "Do it with help." not in json.dumps(first)


def test_an_agent_that_cannot_be_a_child_is_refused_with_those_that_can(helped: FamilyRun) -> None:
    unknown, primary, unlisted = results_in(helped.requests_of("lead")[2])

    assert unknown == (
        "there is no agent 'nobody' that can be a subagent; agents you may use: helper"
    )
    assert "'boss'" in primary
    assert "task: explore" in unlisted or "explore" in unlisted
    denied = helped.rows("SELECT tool FROM tool_call WHERE status = 'denied'")
    assert denied == [{"tool": "task"}]


def test_what_a_child_uses_counts_for_its_parent(helped: FamilyRun) -> None:
    top = helped.row("SELECT * FROM report_session")
    total = helped.row(f"SELECT * FROM session_total WHERE session_id = '{top['session_id']}'")

    assert (total["children"], total["steps"], total["tool_calls"]) == (1, 5, 5)
    assert top["input_tokens"] == 1000 + 100 + 2000 + 500 + 600
    assert top["model_calls"] == 5
    own = helped.top
    assert own["input_tokens"] == 3100
    lead = Decimal(3100 * 3 + (100 + 20 + 100) * 15) / 1_000_000
    child = Decimal(1100 * 3 + 20 * 15) / 1_000_000
    assert top["cost_usd"] == lead + child


def test_a_childs_transcript_is_found_and_its_parents_names_it(helped: FamilyRun) -> None:
    (child,) = helped.children
    told = helped.call("show", child["session_id"])
    in_run = helped.call("show", child["session_id"], "--run", "last")

    assert "Line 5 it is." in told
    assert "child of" in told
    assert helped.top["session_id"] in told
    assert in_run == told
    parents = helped.call("show", helped.top["session_id"])
    assert f"**Child session** `{child['session_id']}`" in parents
    assert json.loads(helped.call("show", child["session_id"], "--json"))["messages"]


def test_only_the_items_own_session_is_a_test_case(helped: FamilyRun) -> None:
    junit = ET.parse(helped.folder / "junit.xml").getroot()
    result = json.loads((helped.folder / "result.json").read_text(encoding="utf-8"))
    status = json.loads((helped.folder / "status.json").read_text(encoding="utf-8"))

    assert [case.attrib["name"] for case in junit.iter("testcase")] == ["family"]
    assert len(result["sessions"]) == 1
    assert status["ended"] == {"passed": 1}
    assert "[1/1]" in helped.stderr
    assert "[2/1]" not in helped.stderr


def test_a_child_may_do_no_more_than_its_parent(tmp_path: Path) -> None:
    reader = {
        "permissions": {"edit": "deny", "task": "allow"},
        "prompt": "You only read.",
    }
    ran = carry_out(
        tmp_path,
        Family(
            agents={"reader": reader, "build": {"model": "wire/builder"}},
            recipe={"agent": "reader"} | may_task("build", **EDIT_ALLOWED),
            models={
                "lead": [Reply(task(agent="build")), Reply(Say("It could not."))],
                "builder": [Reply(WRITE), Reply(Say("I may not."))],
            },
        ),
    )

    assert ran.exit_code == 0, ran.stderr
    (denial,) = results_in(ran.requests_of("builder")[1])
    assert "edit" in denial
    assert "agent:reader" in denial
    assert "write" not in tool_names(ran.requests_of("builder")[0])
    assert not list(ran.folder.rglob("change.patch"))
    decision = ran.row("SELECT * FROM permission_decision WHERE action = 'deny'")
    assert (decision["session_id"], decision["source"]) == (
        ran.children[0]["session_id"],
        "agent:reader",
    )


def test_children_of_children_have_no_children(tmp_path: Path) -> None:
    agents = {
        name: {"model": f"wire/{name}", "prompt": f"You are {name}."} for name in ("middle", "deep")
    }
    ran = carry_out(
        tmp_path,
        Family(
            agents=agents,
            recipe=may_task("middle", "deep"),
            models={
                "lead": [Reply(task(agent="middle")), Reply(Say("Done."))],
                "middle": [Reply(task(agent="deep")), Reply(Say("Passed on."))],
                "deep": [Reply(task(agent="deep")), Reply(Say("Alone."))],
            },
        ),
    )

    assert ran.exit_code == 0, ran.stderr
    assert [child["depth"] for child in ran.children] == [1, 2]
    assert ran.children[1]["parent_id"] == ran.children[0]["session_id"]
    assert "task" in tool_names(ran.requests_of("middle")[0])
    assert "task" not in tool_names(ran.requests_of("deep")[0])
    assert "no tool 'task'" in results_in(ran.requests_of("deep")[1])[0]
    total = ran.row(f"SELECT * FROM session_total WHERE session_id = '{ran.top['session_id']}'")
    assert total["children"] == 2


def test_a_child_goes_on_with_its_own_conversation(tmp_path: Path) -> None:
    def lead(seen: Seen) -> Reply:
        if seen.step == 0:
            return Reply(task("Read it."))
        found = CHILD_ID.search(results_in(seen)[0])
        if seen.step == 1:
            assert found
            return Reply(task("And now change it.", session=found.group()))
        if seen.step == 2:
            assert found
            return Reply(
                task("Hm.", session="ses_00000000000000000000000000"),
                task("Hm.", agent="explore", session=found.group()),
            )
        return Reply(Say("Changed."))

    ran = carry_out(
        tmp_path,
        Family(
            agents={"helper": HELPER},
            recipe=may_task("helper", "explore", **EDIT_ALLOWED),
            models={
                "lead": lead,
                "helper": [
                    Reply(Call("read", {"file_path": "shop/prices.py"})),
                    Reply(Say("Read.")),
                    # Written without another read: what the session has read, it has read.
                    Reply(Call("write", {"file_path": "shop/prices.py", "content": "X = 1\n"})),
                    Reply(Say("Written.")),
                ],
            },
        ),
    )

    assert ran.exit_code == 0, ran.stderr
    (child,) = ran.children
    assert (child["status"], child["attempts"], child["steps"]) == ("passed", 2, 4)
    first, _, third, _ = ran.requests_of("helper")
    assert "And now change it." in json.dumps(third.json["messages"][-1])
    head = without_marks(first.body).partition(b'"messages":[')[0]
    assert without_marks(third.body).startswith(head)
    assert len(third.json["messages"]) == 5
    (patch,) = ran.folder.rglob("change.patch")
    assert b"X = 1" in patch.read_bytes()
    assert patch == ran.folder / "items" / "family" / "attempt-1" / "change.patch"
    answers = ran.folder / "items" / "family" / "children" / child["session_id"]
    said = [(answers / f"attempt-{n}" / "answer.md").read_text(encoding="utf-8") for n in (1, 2)]
    assert said == ["Read.", "Written."]
    unknown, other = results_in(ran.requests_of("lead")[3])
    assert f"yours are: {child['session_id']}" in unknown
    assert "of agent 'helper'" in other


def test_a_child_that_breaks_is_a_result_for_its_parent(tmp_path: Path) -> None:
    refused = Refuse(400, {"type": "error", "error": {"type": "invalid_request_error"}})
    ran = carry_out(
        tmp_path,
        Family(
            agents={
                "helper": HELPER,
                "slow": {"model": "wire/slow", "steps": 1, "prompt": "Slow."},
            },
            recipe=may_task("helper", "slow"),
            models={
                "lead": [Reply(task(), task(agent="slow")), Reply(Say("Then without."))],
                "helper": [refused],
                "slow": [Reply(Say("So far."), Call("read", {"file_path": "NOTES.md"}))],
            },
        ),
    )

    assert ran.exit_code == 0, ran.stderr
    broken, limited = results_in(ran.requests_of("lead")[1])
    assert "state: error (provider_model: " in broken
    assert "state: error (max_steps: the limit steps (1) is used up)" in limited
    assert limited.endswith("So far.")
    assert [(c["status"], c["reason"]) for c in ran.children] == [
        ("errored", "provider_model"),
        ("failed", "max_steps"),
    ]
    assert ran.top["status"] == "passed"


def test_a_parents_limit_of_cost_stops_its_child(tmp_path: Path) -> None:
    dear = Usage(input=100_000, output=10)  # 0.30 USD
    ran = carry_out(
        tmp_path,
        Family(
            agents={"helper": HELPER},
            recipe=may_task("helper") | {"limits": {"cost_usd": 0.5, "output_tokens": 100}},
            models={
                "lead": [Reply(task()), Reply(Say("Enough."))],
                "helper": [
                    Reply(Call("read", {"file_path": "NOTES.md"}), usage=dear),
                    Reply(Call("glob", {"pattern": "*"}), usage=dear),
                    Reply(Say("Never said."), usage=dear),
                ],
            },
        ),
    )

    (child,) = ran.children
    assert (child["status"], child["reason"]) == ("failed", "max_cost")
    assert ran.row("SELECT cost_usd FROM report_session")["cost_usd"] <= Decimal("0.5")
    assert len(ran.requests_of("helper")) == 1


def test_a_childs_tool_calls_and_tokens_count_against_its_parents_limits(tmp_path: Path) -> None:
    reads = [Reply(Call("read", {"file_path": "NOTES.md", "limit": n})) for n in range(1, 9)]
    ran = carry_out(
        tmp_path,
        Family(
            agents={"helper": HELPER},
            recipe=may_task("helper") | {"limits": {"tool_calls": 4}},
            models={"lead": [Reply(task()), Reply(task("More."))], "helper": reads},
        ),
    )

    assert [(c["reason"], c["tool_calls"]) for c in ran.children] == [("max_tool_calls", 4)]
    assert ran.top["reason"] == "max_tool_calls"
    assert ran.exit_code == 1


def test_requests_of_a_parent_and_of_a_child_keep_their_prefix(helped: FamilyRun) -> None:
    for model in ("lead", "helper"):
        requests = helped.requests_of(model)
        for earlier, later in pairwise(requests):
            assert begins_like(later, earlier)
