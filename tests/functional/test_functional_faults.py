"""What providers do wrong, through the command line: exit code, one clear line, nothing lost."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import Factory, frozen

from functional_cli import FORMS, KEY, Form, Job, Outcome, Ran, carry_out
from wire import Call, Delivery, Raw, Refuse, Reply, Say, Tries, Usage
from wire.script import Answer, Script

WRITE = Call("write", {"file_path": "shop/stock.py", "content": "IN_STOCK = 3\n"})
FIRST = Reply(Say("I write it down first."), WRITE, usage=Usage(input=1000, output=100))
"""3,000 + 1,500 millionths: 0.0045 USD."""
LAST = Reply(Say("Stock is kept now."), usage=Usage(input=2000, output=10))
LONG = Say("I have so much to say about stocks and prices that it takes a while. " * 20)
SOON = {"retry-after-ms": "5"}
IMPATIENT = {"first_byte_timeout": 0.6, "idle_timeout": 0.6}
# What happens below the wire format is shown with one of the two.
ANTHROPIC: tuple[Form, ...] = ("anthropic",)
OPENAI: tuple[Form, ...] = ("openai-chat",)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


@frozen(kw_only=True)
class Trouble:
    """What the second request of a session meets, and what must come of it."""

    answers: tuple[Answer, ...] = ()
    script: Script | None = None
    """In place of FIRST and `answers`."""
    tries: int = 1
    """Rows of the step that is troubled."""
    kind: str | None = None
    """`error_kind` of those rows."""
    verdict: tuple[str, str, str] | None = None
    """Reason, JUnit tag and JUnit type; None: it passes."""
    said: str = ""
    """Stands in the session's one line."""
    provider: Mapping[str, Any] = Factory(dict)
    limits: Mapping[str, Any] = Factory(dict)
    known: bool = True
    patch: bool = True
    forms: tuple[Form, ...] = FORMS
    status: int | None = None
    """`http_status` of the last row of the step."""

    def job(self, name: str, form: Form) -> Job:
        script = self.script if self.script is not None else (FIRST, Tries(*self.answers), LAST)
        recipe = {
            "prompt": "Keep stock.",
            "permissions": {"edit": {"shop/**": "allow"}},
            "checks": None,
            "expect": None,
            "limits": dict(self.limits) or None,
        }
        return Job(f"{name}.{form}", script, form, recipe, self.provider, known=self.known)


def error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "code": kind, "message": message}}


LIMITED = Refuse(429, error("rate_limit_error", "slow down"), SOON)
BROKEN = Refuse(500, "<html><h1>Oops</h1></html>", SOON, "text/html")
OVERLOADED = Refuse(529, error("overloaded_error", "Overloaded"), SOON)
OVERLOAD = {"type": "overloaded_error"}
CUT = Reply(LONG, delivery=Delivery(cut_after=900))
WRITE_MORE = Call("write", {"file_path": "shop/more.py", "content": "MORE = 1\n"})
LONG_CALL = Call("write", {"file_path": "shop/long.py", "content": "# long\n" * 900})

PASSING = {
    "429-then-fine": Trouble(
        answers=(Refuse(429, error("rate_limit_error", "slow"), {"retry-after": "1"}), LAST),
        tries=2,
        kind="rate_limit",
        status=200,
        forms=ANTHROPIC,
    ),
    "mixed-refusals-then-fine": Trouble(
        answers=(LIMITED, BROKEN, OVERLOADED, LAST), tries=4, status=200, forms=OPENAI
    ),
    "cut-then-fine": Trouble(answers=(CUT, LAST), tries=2, kind="network", status=200),
    "silent-then-fine": Trouble(
        answers=(Reply(LONG, delivery=Delivery(silent_after=900)), LAST),
        tries=2,
        kind="timeout",
        status=200,
        provider=IMPATIENT | {"first_byte_timeout": 10},
    ),
    "error-event-then-fine": Trouble(
        answers=(Reply(LONG, delivery=Delivery(error_after=(6, OVERLOAD))), LAST),
        tries=2,
        kind="unavailable",
        status=200,
    ),
    "cut-in-a-call": Trouble(
        answers=(Reply(LONG_CALL, delivery=Delivery(cut_after=3000)), LAST),
        tries=2,
        kind="network",
        status=200,
    ),
    "cut-after-a-call-that-may-go-on": Trouble(
        # This format does not say that a call is complete before the reply is.
        answers=(Reply(WRITE_MORE, LONG_CALL, delivery=Delivery(cut_after=6000)), LAST),
        tries=2,
        kind="network",
        status=200,
        forms=OPENAI,
    ),
    "no-end-mark-and-cut": Trouble(
        answers=(
            Reply(Say("Done."), delivery=Delivery(end_mark=False, framing="close")),
        ),
        status=200,
    ),
}  # fmt: skip

ODD_CALLS = {
    name: Trouble(script=(FIRST, Reply(odd), LAST))
    for name, odd in {
        "invalid-json": Call("write", '{"file_path": "shop/more.py", "content": '),
        "no-object": Call("write", "[1, 2]"),
        "against-the-schema": Call("write", {"file_path": 3, "content": "x"}),
        "unknown-tool": Call("frobnicate", {"a": 1}),
        "wrong-case": Call("WRITE", WRITE_MORE.arguments),
    }.items()
} | {
    "cut-after-a-tool": Trouble(
        script=(FIRST, Reply(WRITE_MORE, LONG_CALL, delivery=Delivery(cut_after=6000)), LAST),
        forms=ANTHROPIC,
    )
}

ERRORED = {
    "wrong-key": Trouble(
        script=(FIRST,),
        kind="auth",
        verdict=("provider_auth", "error", "provider.auth"),
        said="HTTP 401",
        provider={"api_key": "sk-wrong-9876543210"},
        patch=False,
        status=401,
    ),
    "unknown-model": Trouble(
        script=(FIRST,),
        known=False,
        kind="model",
        verdict=("provider_model", "error", "provider.model"),
        said="HTTP 404",
        patch=False,
        status=404,
    ),
    "429-for-ever": Trouble(
        answers=(LIMITED,),
        tries=8,
        kind="rate_limit",
        verdict=("provider_rate_limit", "error", "provider.rate_limit"),
        said="slow down",
        status=429,
        forms=ANTHROPIC,
    ),
    "429-beyond-the-limit": Trouble(
        answers=(Refuse(429, error("rate_limit_error", "slow"), {"retry-after": "3600"}),),
        limits={"seconds": 100},
        kind="rate_limit",
        verdict=("provider_rate_limit", "error", "provider.rate_limit"),
        said="HTTP 429",
        status=429,
        forms=OPENAI,
    ),
    "no-credit": Trouble(
        answers=(Refuse(429, error("insufficient_quota", "You have no credit left"), SOON),),
        kind="quota",
        verdict=("provider_quota", "error", "provider.quota"),
        said="no credit left",
        status=429,
        forms=OPENAI,
    ),
    "500-for-ever": Trouble(
        answers=(BROKEN,),
        tries=8,
        kind="unavailable",
        verdict=("provider_unavailable", "error", "provider.unavailable"),
        said="HTTP 500: Oops",
        status=500,
        forms=ANTHROPIC,
    ),
    "529-for-ever": Trouble(
        answers=(OVERLOADED,),
        tries=8,
        kind="unavailable",
        verdict=("provider_unavailable", "error", "provider.unavailable"),
        said="HTTP 529: Overloaded",
        status=529,
        forms=OPENAI,
    ),
    "cut-again-and-again": Trouble(
        answers=(CUT,),
        tries=2,
        kind="network",
        verdict=("provider_network", "error", "provider.network"),
        said="connection",
        status=200,
    ),
    "ends-too-early": Trouble(
        answers=(Reply(LONG, delivery=Delivery(cut_after=900, clean_cut=True)),),
        tries=2,
        kind="network",
        verdict=("provider_network", "error", "provider.network"),
        said="stream ended",
        status=200,
    ),
    "silent-in-the-middle": Trouble(
        answers=(Reply(LONG, delivery=Delivery(silent_after=900)),),
        tries=2,
        kind="timeout",
        verdict=("provider_timeout", "error", "provider.timeout"),
        said="no event for 0.6 s",
        provider=IMPATIENT | {"first_byte_timeout": 10},
        status=200,
    ),
    "trickle-for-ever": Trouble(
        answers=(Reply(LONG, delivery=Delivery(silent_after=900, trickle=0.05)),),
        tries=2,
        kind="timeout",
        verdict=("provider_timeout", "error", "provider.timeout"),
        said="no event for 0.6 s",
        provider=IMPATIENT | {"first_byte_timeout": 10},
        status=200,
    ),
    "a-web-page": Trouble(
        answers=(Refuse(200, "<html><h1>Log in</h1></html>", {}, "text/html"),),
        kind="protocol",
        verdict=("provider_protocol", "error", "provider.protocol"),
        said="Log in",
        status=200,
        forms=ANTHROPIC,
    ),
    "an-error-under-200": Trouble(
        answers=(Refuse(200, error("invalid_request_error", "temperature is odd")),),
        kind="model",
        verdict=("provider_model", "error", "provider.model"),
        said="temperature is odd",
        status=200,
        forms=OPENAI,
    ),
    "too-long": Trouble(
        answers=(Refuse(400, error("invalid_request_error", "prompt is too long: 9 > 8")),),
        kind="context_overflow",
        verdict=("context_overflow", "error", "provider.context_overflow"),
        said="longer than the model's window",
        status=400,
        forms=ANTHROPIC,
    ),
    "garbage": Trouble(
        answers=(Raw(b"\x00\xff\x1b[31mgarbage\r\n\r\n"),),
        kind="protocol",
        verdict=("provider_protocol", "error", "provider.protocol"),
        said="does not speak HTTP",
        forms=OPENAI,
    ),
    "garbage-in-the-stream": Trouble(
        answers=(Raw(STREAM_HEAD + b"data: {oops\n\n\xff\xfe\x00\n\n"),),
        kind="protocol",
        verdict=("provider_protocol", "error", "provider.protocol"),
        said="JSON",
        status=200,
    ),
}  # fmt: skip

# Nothing here says when to come back, so the back-off of 2, 4, 8 ... seconds runs into the limit.
WAITING = {
    "429-without-a-word": Trouble(
        answers=(Refuse(429, error("rate_limit_error", "slow down")),),
        kind="rate_limit",
        verdict=("provider_rate_limit", "error", "provider.rate_limit"),
        said="slow down",
        status=429,
        forms=ANTHROPIC,
    ),
    "closed-at-once": Trouble(
        answers=(Raw(),),
        kind="network",
        verdict=("provider_network", "error", "provider.network"),
        said="the connection to 127.0.0.1",
        forms=OPENAI,
    ),
    "half-a-head": Trouble(
        answers=(Raw(b"HTTP/1.1 200 OK\r\ncontent-ty"),),
        kind="network",
        verdict=("provider_network", "error", "provider.network"),
        said="the connection to 127.0.0.1",
        forms=ANTHROPIC,
    ),
}  # fmt: skip

FAILED = {
    "empty": Trouble(
        script=(Reply(),), verdict=("empty", "failure", "agent.empty"), patch=False, status=200
    ),
    "truncated": Trouble(
        answers=(Reply(Say("Stock is k"), stop="TRUNCATED"),),
        verdict=("output_length", "failure", "limit.output"),
        said="cut off",
        status=200,
    ),
    "filtered": Trouble(
        answers=(Reply(Say("I will not"), stop="FILTERED"),),
        verdict=("content_filter", "failure", "agent.content_filter"),
        said="content filter",
        status=200,
    ),
    "too-many-steps": Trouble(
        script=(FIRST, Reply(Say("One more file."), WRITE_MORE), LAST),
        limits={"steps": 2},
        verdict=("max_steps", "failure", "limit.steps"),
        said="steps (2)",
        status=200,
    ),
}

STOPS = {
    "anthropic": {"TRUNCATED": "max_tokens", "FILTERED": "refusal"},
    "openai-chat": {"TRUNCATED": "length", "FILTERED": "content_filter"},
}


def in_words_of(form: Form, script: Script) -> Script:
    """Each format has its own words for why a reply ended."""

    def said(answer: Answer) -> Answer:
        if isinstance(answer, Reply) and answer.stop in STOPS[form]:
            return Reply(*answer.blocks, usage=answer.usage, stop=STOPS[form][str(answer.stop)])
        return answer

    return [
        Tries(*map(said, step.answers)) if isinstance(step, Tries) else said(step)
        for step in script
    ]


def carried_out(folder: Path, troubles: Mapping[str, Trouble], *arguments: str) -> Ran:
    jobs = [trouble.job(name, form) for name, trouble in troubles.items() for form in trouble.forms]
    jobs = [
        Job(
            j.name,
            in_words_of(j.form, cast("Script", j.script)),
            j.form,
            j.recipe,
            j.provider,
            known=j.known,
        )
        for j in jobs
    ]
    return carry_out(folder, jobs, *arguments)


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("passing"), PASSING | ODD_CALLS)


@pytest.fixture(scope="module")
def errored(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("errored"), ERRORED, "--progress", "plain")


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers there
        nobody = {"base_url": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        silent = {"first_byte_timeout": 0.5}
        short = {"seconds": 6.5}
        troubles = {
            "refused": Trouble(script=(), provider=nobody, limits=short, forms=OPENAI),
            "silent": Trouble(
                script=(Raw(hang=True),), provider=silent, limits=short, forms=ANTHROPIC
            ),
            **WAITING,
        }
        folder = tmp_path_factory.mktemp("waiting")
        return carried_out(folder, troubles, "-j", "8", "--limit", "seconds=10")


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("failed"), FAILED)


def troubled_step(session: Outcome, trouble: Trouble) -> list[dict[str, Any]]:
    step = 1 if trouble.script is not None and len(trouble.script) == 1 else 2
    rows = [call for call in session.calls if call["step"] == step]
    assert [row["try"] for row in rows] == list(range(1, len(rows) + 1))
    return rows


def check(session: Outcome, trouble: Trouble) -> None:
    assert len(session.calls) == len(session.requests), "one row for each request"
    rows = troubled_step(session, trouble)
    step = rows[0]["step"]
    assert rows[-1]["http_status"] == trouble.status
    troubled = rows if trouble.verdict and trouble.kind else rows[:-1]
    if trouble.kind:
        assert {row["error_kind"] for row in troubled} == {trouble.kind}
    assert all(row["error"] for row in troubled)
    if step == 2:
        assert session.calls[0]["cost_usd"] is not None
        assert session.row["input_tokens"] >= 1000
        assert "I write it down first." in session.transcript
    if trouble.patch:
        assert session.patch is not None
        assert b"IN_STOCK = 3" in session.patch
    else:
        assert session.patch is None
    if trouble.verdict is None:
        assert (session.status, session.verdict) == ("passed", None)
        return
    reason, tag, kind = trouble.verdict
    assert session.status == {"error": "errored", "failure": "failed"}[tag]
    assert (session.reason, session.verdict) == (reason, (tag, kind))
    assert "\n" not in session.detail
    assert trouble.said in session.detail
    assert KEY not in session.detail


def said_once(ran: Ran, name: str, trouble: Trouble) -> None:
    """One line of the progress says how it ended, and the summary says it too."""
    reason, tag, _ = trouble.verdict or ("", "", "")
    word = {"error": "ERROR", "failure": "FAILED"}[tag]
    (line,) = (line for line in ran.stderr.splitlines() if f"{word} {name}: " in line)
    assert f" {reason}: " in line
    assert "Traceback" not in ran.stdout + ran.stderr
    assert trouble.said in (ran.folder / "summary.md").read_text(encoding="utf-8")


def cases(troubles: Mapping[str, Trouble]) -> list[Any]:
    return [
        pytest.param(f"{name}.{form}", trouble, id=f"{name}.{form}")
        for name, trouble in troubles.items()
        for form in trouble.forms
    ]


@pytest.mark.parametrize(("name", "trouble"), cases(PASSING))
def test_what_can_be_mended_by_trying_again_passes(
    passing: Ran, name: str, trouble: Trouble
) -> None:
    assert passing.exit_code == 0
    session = passing.session(name)
    check(session, trouble)
    assert len(troubled_step(session, trouble)) == trouble.tries


@pytest.mark.parametrize(("name", "trouble"), cases(ERRORED))
def test_a_provider_that_fails_ends_the_session_errored(
    errored: Ran, name: str, trouble: Trouble
) -> None:
    assert errored.exit_code == 3
    session = errored.session(name)
    check(session, trouble)
    said_once(errored, name, trouble)
    assert len(troubled_step(session, trouble)) == trouble.tries
    assert {attempt["error_kind"] for attempt in session.attempts} == {"provider"}


@pytest.mark.parametrize(("name", "trouble"), cases(FAILED))
def test_a_reply_that_is_no_good_ends_the_session_failed(
    failed: Ran, name: str, trouble: Trouble
) -> None:
    assert failed.exit_code == 1
    check(failed.session(name), trouble)
    said_once(failed, name, trouble)


@pytest.mark.parametrize(("name", "trouble"), cases(WAITING))
def test_the_time_limit_ends_the_waiting(waiting: Ran, name: str, trouble: Trouble) -> None:
    assert waiting.exit_code == 3
    session = waiting.session(name)
    check(session, trouble)
    said_once(waiting, name, trouble)
    assert len(troubled_step(session, trouble)) in (2, 3)
    notices = [event["text"] for event in waiting.events_of(name, "notice")]
    assert "next try in 2." in notices[0]
    assert notices[-1].startswith("no retry: waiting ")
    (attempt,) = session.attempts
    assert attempt["wall_s"] < 10
    assert attempt["working_s"] < attempt["wall_s"] - 1.9, "waiting is no working time"


@pytest.mark.parametrize("form", FORMS)
def test_a_call_in_the_last_step_is_refused_and_the_request_kept_its_tools(
    failed: Ran, form: Form
) -> None:
    session = failed.session(f"too-many-steps.{form}")
    first, last = (seen.json for seen in session.requests)

    assert last["tools"] == first["tools"]
    assert "tool_choice" not in first
    assert last["tool_choice"] == ({"type": "none"} if form == "anthropic" else "none")
    assert "last step" in json.dumps(last["messages"][-1])
    assert [tool["status"] for tool in session.tools] == ["completed", "denied"]
    assert session.patch is not None
    assert b"shop/more.py" not in session.patch


@pytest.mark.parametrize("name", ["cut-again-and-again", "silent-in-the-middle"])
def test_tokens_of_a_reply_that_broke_off_are_kept_and_its_cost_is_not_made_up(
    errored: Ran, name: str
) -> None:
    session = errored.session(f"{name}.anthropic")

    assert [call["input_tokens"] for call in session.calls] == [1000, 100, 100]
    assert [call["cost_usd"] is None for call in session.calls] == [False, True, True]
    assert session.row["input_tokens"] == 1200
    assert "2 unpriced calls" in (errored.folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("refused.openai-chat", "network", "cannot connect to 127.0.0.1:"),
        ("silent.anthropic", "timeout", "no answer within 0.5 s"),
    ],
)
def test_nobody_there_and_nobody_answering_end_within_the_limit(
    waiting: Ran, name: str, kind: str, told: str
) -> None:
    session = waiting.session(name)

    assert session.verdict == ("error", f"provider.{kind}")
    assert told in session.detail
    assert {call["error_kind"] for call in session.calls} == {kind}
    assert all(call["duration_s"] < 2 for call in session.calls)
    assert len(session.requests) == (len(session.calls) if kind == "timeout" else 0)
    assert session.row["cost_usd"] is None
    (line,) = (line for line in waiting.stderr.splitlines() if f"ERROR {name}: " in line)
    assert told in line


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("invalid-json", "error", "not a JSON object"),
        ("no-object", "error", "it is a list"),
        ("against-the-schema", "error", "file_path: 3 is not of type 'string'"),
        ("unknown-tool", "error", "there is no tool 'frobnicate'; the tools are: "),
        ("wrong-case", "completed", ""),
    ],
)
def test_an_odd_call_is_answered_and_the_session_goes_on(
    passing: Ran, name: str, form: Form, status: str, told: str
) -> None:
    assert passing.exit_code == 0
    session = passing.session(f"{name}.{form}")

    assert (session.status, session.row["steps"]) == ("passed", 3)
    assert len(session.calls) == len(session.requests) == 3
    assert [tool["status"] for tool in session.tools] == ["completed", status]
    assert told in (session.tools[1]["error"] or "")
    assert told in json.dumps(session.requests[2].json["messages"], ensure_ascii=False)
    assert session.patch is not None
    assert (b"shop/more.py" in session.patch) == (status == "completed")


def test_what_ran_before_the_connection_was_cut_is_not_run_again(passing: Ran) -> None:
    session = passing.session("cut-after-a-tool.anthropic")

    assert (session.status, session.row["steps"]) == ("passed", 3)
    assert [call["error_kind"] for call in session.calls] == [None, "network", None]
    assert [tool["status"] for tool in session.tools] == ["completed", "completed"]
    assert "interrupted" in json.dumps(session.requests[2].json["messages"])
    assert session.patch is not None
    assert b"shop/more.py" in session.patch
    assert b"shop/long.py" not in session.patch
