"""Permissions, limits, expectations and secrets, through the command line and a real wire."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from functional_cli import ANSWER, CANARY, KEY, READ, Form, Job, Ran, carry_out
from wire import Call, Reply, Say, Usage
from wire.script import Block, Script

DONE = Reply(Say("That is all."))
OPEN = {"edit": "allow", "bash": "allow"}
SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "words": {"type": "string"}},
    "required": ["count"],
    "additionalProperties": False,
}


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


def write(path: str, content: str = "X = 1\n") -> Call:
    return Call("write", {"file_path": path, "content": content})


def steps(*calls: Block, usage: Usage | None = None) -> Script:
    return [*(Reply(call, usage=usage) for call in calls), DONE]


def looks(count: int) -> list[Call]:
    """Calls that differ, so that they are no loop."""
    return [Call("read", {"file_path": "shop/prices.py", "offset": n}) for n in range(1, count + 1)]


def job(name: str, script: Script, form: Form = "anthropic", **recipe: Any) -> Job:
    bare = {"permissions": None, "checks": None, "expect": None}
    return Job(name, script, form, {**bare, **recipe})


PASSING = [
    job(
        "goes-on",
        steps(bash("git log"), bash("git log"), write("tests/more.py")),
        permissions={"edit": {"shop/**": "allow"}, "bash": {"git status": "allow"}},
    ),
    job("hidden", steps(bash("ls"), write("shop/more.py")), "openai-chat"),
    job(
        "read-only-agent", steps(bash("ls"), write("shop/more.py")), agent="plan", permissions=OPEN
    ),
    job("final-valid", steps(Call("final_output", {"count": 3})), response={"json_schema": SCHEMA}),
    job(
        "final-corrected",
        [
            Reply(Call("final_output", {"count": "3", "more": 1})),
            Reply(Say("Oh.")),
            Reply(Call("final_output", {"count": 3, "words": "ä"})),
        ],
        "openai-chat",
        response={"json_schema": SCHEMA},
    ),
    job(
        "final-list",
        steps(Call("final_output", {"value": ["a", "b"]})),
        response={"json_schema": {"type": "array", "items": {"type": "string"}}},
    ),
    job("loop-allowed", steps(*[READ] * 5), permissions={"doom_loop": "allow"}),
]

FAILING = [
    job(
        "denial-fails",
        steps(bash("git log"), READ),
        on_denial="fail",
        permissions=OPEN | {"bash": {"ls": "allow"}},
    ),
    job(
        "two-denials",
        steps(bash("git log"), READ, bash("git show"), READ),
        on_denial=2,
        permissions={"bash": {"ls": "allow"}},
    ),
    job("hidden-counts", steps(bash("ls"), READ), on_denial="fail"),
    job(
        "never-final", [Reply(Say("It is 3."))] * 9, "openai-chat", response={"json_schema": SCHEMA}
    ),
    job("loop", steps(*[READ] * 5)),
    job("cycle", steps(*[READ, Call("glob", {"pattern": "*.md"})] * 5), "openai-chat"),
    job("tool-calls", steps(*looks(4)), limits={"tool_calls": 2}),
    job(
        "tokens", steps(*looks(20), usage=Usage(input=2500, output=100)), limits={"tokens": 20_000}
    ),
    job("cost", steps(*looks(20), usage=Usage(input=2000, output=200)), limits={"cost_usd": 0.05}),
    job(
        "expectations",
        steps(READ),
        expect={
            "patch": "required",
            "max_cost_usd": 0.0001,
            "tools_used": ["bash", "read"],
            "tools_unused": ["read"],
            "touches": ["shop/**"],
        },
    ),
    job(
        "too-many-files",
        steps(write("a.py"), write("b.py")),
        permissions=OPEN,
        expect={"max_files": 1, "touches": ["a.*"], "answer": "nonempty"},
    ),
    job("unwanted-patch", steps(write("a.py")), permissions=OPEN, expect={"patch": "none"}),
    job(
        "bad-check",
        steps(write("a.py")),
        permissions=OPEN,
        checks=[
            {"name": "a is there", "run": "test -e a.py"},
            {"name": "b is there", "run": "echo no b here; test -e b.py"},
            {"name": "quick", "run": "sleep 30", "timeout": 0.3},
        ],
    ),
    job(
        "workflow",
        steps(write("a.py"), write(".github/workflows/x.yml", "on: push\n")),
        permissions=OPEN,
    ),
    job("outside-allow", steps(write("a.py")), permissions=OPEN, patch={"allow": ["shop/**"]}),
]


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carry_out(tmp_path_factory.mktemp("passing"), PASSING)


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carry_out(tmp_path_factory.mktemp("failing"), FAILING)


def summary(ran: Ran) -> str:
    return (ran.folder / "summary.md").read_text(encoding="utf-8")


def tools_of(request: Any) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in request["tools"]]


def test_the_exit_codes_follow_the_sessions(passing: Ran, failing: Ran) -> None:
    assert (passing.exit_code, failing.exit_code) == (0, 1)
    assert {row["status"] for row in passing.tables["session"]} == {"passed"}
    assert {row["status"] for row in failing.tables["session"]} == {"failed"}
    for ran in (passing, failing):
        assert len(ran.requests) == len(ran.tables["model_call"])
        assert "Traceback" not in ran.stdout + ran.stderr


def test_denied_calls_are_rows_and_the_summary_has_the_lines_that_would_allow(
    passing: Ran,
) -> None:
    session = passing.session("goes-on")

    assert [(d["permission"], d["pattern"], d["action"]) for d in session.decisions] == [
        ("bash", "git log", "deny"),
        ("bash", "git log", "deny"),
        ("edit", "tests/more.py", "deny"),
    ]
    assert [tool["status"] for tool in session.tools] == ["denied"] * 3
    assert session.patch is None
    told = [tool["error"] for tool in session.tools]
    assert "git log" in told[0]
    assert len(told[1]) > len(told[0]), "the same call again gets a stronger hint"
    assert '"git log": allow' in summary(passing)
    assert '"tests/more.py": allow' in summary(passing)


def test_tools_that_no_rule_can_allow_are_not_shown_and_calling_them_is_a_denial(
    passing: Ran, failing: Ran
) -> None:
    session = passing.session("hidden")

    assert tools_of(session.requests[0].json) == ["glob", "grep", "read", "todo"]
    assert [tool["status"] for tool in session.tools] == ["denied", "denied"]
    assert {d["action"] for d in session.decisions} == {"deny"}
    assert len(session.decisions) == 2
    assert failing.session("hidden-counts").verdict == ("failure", "policy.denied")


def test_a_read_only_agent_stays_read_only_whatever_the_recipe_allows(passing: Ran) -> None:
    session = passing.session("read-only-agent")

    assert session.patch is None
    assert session.tools[-1]["status"] == "denied"


@pytest.mark.parametrize(("name", "requests"), [("denial-fails", 1), ("two-denials", 3)])
def test_denials_end_the_session_where_the_recipe_says_so(
    failing: Ran, name: str, requests: int
) -> None:
    session = failing.session(name)

    assert (session.reason, session.verdict) == ("permission", ("failure", "policy.denied"))
    assert len(session.requests) == requests


def test_the_answer_by_schema_is_json_and_an_invalid_one_is_corrected(passing: Ran) -> None:
    valid, corrected = passing.session("final-valid"), passing.session("final-corrected")

    assert json.loads((valid.folder / "answer.json").read_text()) == {"count": 3}
    assert len(valid.requests) == 1
    answer = (corrected.folder / "answer.json").read_text(encoding="utf-8")
    assert json.loads(answer) == {"count": 3, "words": "ä"}
    assert [tool["status"] for tool in corrected.tools] == ["error", "completed"]
    assert "final_output" in json.dumps(corrected.requests[-1].json["messages"][-1])
    assert valid.decisions == [], "it needs no permission"
    words = passing.session("final-list").folder / "answer.json"
    assert json.loads(words.read_text()) == ["a", "b"]


def test_an_answer_by_schema_that_never_comes_fails(failing: Ran) -> None:
    session = failing.session("never-final")

    assert (session.reason, session.verdict) == ("schema", ("failure", "agent.schema"))
    assert len(session.requests) == 4, "asked three times more"
    assert (session.folder / "answer.md").read_text() == "It is 3."
    assert not (session.folder / "answer.json").exists()


@pytest.mark.parametrize(("name", "ran"), [("loop", 3), ("cycle", 6)])
def test_a_loop_ends_the_session_unless_a_rule_allows_it(
    failing: Ran, passing: Ran, name: str, ran: int
) -> None:
    session = failing.session(name)

    assert (session.reason, session.verdict) == ("doom_loop", ("failure", "policy.doom_loop"))
    statuses = [tool["status"] for tool in session.tools]
    assert statuses == ["completed"] * ran + ["denied"]
    assert session.decisions[-1]["permission"] == "doom_loop"
    assert {tool["status"] for tool in passing.session("loop-allowed").tools} == {"completed"}


def test_no_tool_runs_beyond_the_limit_of_tool_calls(failing: Ran) -> None:
    session = failing.session("tool-calls")

    assert session.verdict == ("failure", "limit.tool_calls")
    assert [tool["status"] for tool in session.tools] == ["completed", "completed", "denied"]
    assert len(session.requests) == 3


def spent_before(session_calls: Sequence[Mapping[str, Any]], key: str) -> Iterator[Any]:
    spent = Decimal(0)
    for call in session_calls:
        yield spent
        if key == "usd":
            spent += call["cost_usd"]
        else:
            spent += call["input_tokens"] + call["output_tokens"]


def test_no_call_is_made_that_could_pass_the_token_limit(failing: Ran) -> None:
    session = failing.session("tokens")
    opened = failing.events_of("tokens", "model_call_opened")

    assert session.verdict == ("failure", "limit.tokens")
    assert 2 < len(session.requests) == len(opened) < 20
    for event, spent in zip(opened, spent_before(session.calls, "tokens"), strict=True):
        assert spent + event["reserved_tokens"] <= 20_000
    assert session.row["input_tokens"] + session.row["output_tokens"] <= 20_000


def test_no_call_is_made_that_could_pass_the_cost_limit(failing: Ran) -> None:
    session = failing.session("cost")
    opened = failing.events_of("cost", "model_call_opened")

    assert session.verdict == ("failure", "limit.cost")
    assert 2 < len(session.requests) == len(opened) < 20
    for event, seen, spent in zip(
        opened, session.requests, spent_before(session.calls, "usd"), strict=True
    ):
        reserved = Decimal(event["reserved_usd"])
        assert spent + reserved <= Decimal("0.05")
        # What the reply may cost at most is inside the reservation: 15 USD per million.
        assert seen.json["max_tokens"] * Decimal(15) / 1_000_000 <= reserved
    assert session.row["cost_usd"] == Decimal("0.009") * len(session.calls)
    assert session.row["cost_usd"] <= Decimal("0.05")


@pytest.mark.parametrize(
    ("name", "reason", "unmet"),
    [
        (
            "expectations",
            "expect:patch",
            {"patch", "max_cost_usd", "tools_used", "tools_unused", "touches"},
        ),
        ("too-many-files", "expect:max_files", {"max_files", "touches"}),
        ("unwanted-patch", "expect:patch", {"patch"}),
        ("bad-check", "check:b is there", {"b is there", "quick"}),
    ],
)
def test_checks_and_expectations_decide_and_each_is_a_case(
    failing: Ran, name: str, reason: str, unmet: set[str]
) -> None:
    session = failing.session(name)

    assert session.reason == reason
    assert {check["name"] for check in session.checks if not check["passed"]} == unmet
    kind, _, what = reason.partition(":")
    assert session.verdict == ("failure", f"{kind}.{what.replace(' ', '_')}")
    for check in session.checks:
        case = failing.cases[f"{name} / {check['name']}"]
        assert ([child.tag for child in case if child.tag == "failure"] == []) == check["passed"]


def test_a_check_that_hangs_is_ended(failing: Ran) -> None:
    rows = {check["name"]: check for check in failing.session("bad-check").checks}

    assert rows["quick"]["reason"] == "timed out after 0.3 s"
    assert rows["quick"]["duration_s"] < 10
    assert rows["b is there"]["exit_code"] == 1


@pytest.mark.parametrize(
    ("name", "path"), [("workflow", ".github/workflows/x.yml"), ("outside-allow", "a.py")]
)
def test_a_patch_that_the_rules_refuse_fails_the_session_and_is_kept(
    failing: Ran, name: str, path: str
) -> None:
    session = failing.session(name)

    assert (session.reason, session.verdict) == ("patch", ("failure", "policy.patch"))
    assert path in session.detail
    assert path in session.patches[0]["refused"]
    assert session.patch is not None
    assert path.encode() in session.patch


SPELLINGS = [
    f"{base64.b64encode(KEY.encode()).decode()}",
    base64.b64encode(b"x" + KEY.encode())[2:-4].decode(),
    base64.b64encode(b"xy" + KEY.encode())[3:-4].decode(),
    KEY.encode().hex(),
    KEY,
    CANARY,
    base64.b64encode(CANARY.encode()).decode(),
]


@pytest.fixture(scope="module")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    coded = base64.b64encode(KEY.encode()).decode()
    script = [
        Reply(bash("env; tr '\\0' '\\n' < /proc/$PPID/environ; echo $WIRE_KEY$DATABASE_PASSWORD")),
        Reply(Say(f"The key is {KEY}, coded {coded}."), bash(f"echo {KEY} | tee key.txt | base64")),
        Reply(Say(f"As I said: {KEY}."), write("key.py", f"KEY = '{KEY}'\nCODED = '{coded}'\n")),
        Reply(bash("yes $(cat key.txt) | head -c 200000")),
        Reply(Say(f"{ANSWER} {KEY}")),
    ]
    jobs = [job("secrets", script, permissions=OPEN)]
    wrong = Job("wrong", [DONE], "anthropic", {}, {"api_key": "{env:OTHER_KEY}"})
    folder = tmp_path_factory.mktemp("secretive")
    other = {"OTHER_KEY": KEY[::-1] + "-wrong"}
    return carry_out(folder, [*jobs, wrong], "--events", "events.copy", environ=other)


def everything_in(database: Path) -> str:
    with duckdb.connect(str(database), read_only=True) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        ).fetchall()
        return "\n".join(
            str(connection.execute(f'SELECT * FROM "{table}"').fetchall()) for (table,) in tables
        )


def test_no_secret_reaches_a_file_of_the_run(secretive: Ran) -> None:
    harness = secretive.project / ".harness"
    files = [path for path in harness.rglob("*") if path.is_file()]
    files.append(secretive.project / "events.copy")
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in files}
    texts |= {path: texts[path] + everything_in(path) for path in files if path.suffix == ".duckdb"}
    other = KEY[::-1] + "-wrong"

    assert len([path for path in files if path.suffix == ".duckdb"]) == 2
    assert any("outputs" in path.parts for path in files)
    for path, text in texts.items():
        for spelling in (*SPELLINGS, other):
            assert spelling not in text, f"{spelling} in {path.relative_to(harness.parent)}"
    for spelling in (*SPELLINGS, other):
        assert spelling not in secretive.stdout + secretive.stderr
    assert "[masked]" in secretive.session("secrets").transcript


def test_tools_see_no_secret_of_the_runners_environment(secretive: Ran) -> None:
    session = secretive.session("secrets")
    seen = session.requests[1].body.decode()

    assert "PATH=" in seen
    for name in ("WIRE_KEY", "DATABASE_PASSWORD", "OTHER_KEY", CANARY):
        assert f"{name}=" not in seen
    assert KEY not in seen
    assert CANARY not in seen
