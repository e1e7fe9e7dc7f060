"""What providers do wrong, through the command line: exit code, one clear line, nothing lost."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
CUT = Reply(LONG, delivery=Delivery(cut_after=900))
WRITE_MORE = Call("write", {"file_path": "shop/more.py", "content": "MORE = 1\n"})

PASSING = {
    "429-then-fine": Trouble(
        answers=(Refuse(429, error("rate_limit_error", "slow"), {"retry-after": "1"}), LAST),
        tries=2,
        kind="rate_limit",
        status=200,
    ),
    "mixed-refusals-then-fine": Trouble(
        answers=(LIMITED, BROKEN, OVERLOADED, LAST), tries=4, status=200
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
        answers=(Reply(LONG, delivery=Delivery(error_after=(6, {"type": "overloaded_error"}))), LAST),
        tries=2,
        kind="unavailable",
        status=200,
    ),
    "no-end-mark-and-cut": Trouble(
        answers=(
            Reply(Say("Done."), delivery=Delivery(end_mark=False, framing="close")),
        ),
        status=200,
    ),
}  # fmt: skip

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
    ),
    "429-beyond-the-limit": Trouble(
        answers=(Refuse(429, error("rate_limit_error", "slow"), {"retry-after": "3600"}),),
        limits={"seconds": 100},
        kind="rate_limit",
        verdict=("provider_rate_limit", "error", "provider.rate_limit"),
        said="HTTP 429",
        status=429,
    ),
    "no-credit": Trouble(
        answers=(Refuse(429, error("insufficient_quota", "You have no credit left"), SOON),),
        kind="quota",
        verdict=("provider_quota", "error", "provider.quota"),
        said="no credit left",
        status=429,
    ),
    "500-for-ever": Trouble(
        answers=(BROKEN,),
        tries=8,
        kind="unavailable",
        verdict=("provider_unavailable", "error", "provider.unavailable"),
        said="HTTP 500: Oops",
        status=500,
    ),
    "529-for-ever": Trouble(
        answers=(OVERLOADED,),
        tries=8,
        kind="unavailable",
        verdict=("provider_unavailable", "error", "provider.unavailable"),
        said="HTTP 529: Overloaded",
        status=529,
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
    ),
    "an-error-under-200": Trouble(
        answers=(Refuse(200, error("invalid_request_error", "temperature is odd")),),
        kind="model",
        verdict=("provider_model", "error", "provider.model"),
        said="temperature is odd",
        status=200,
    ),
    "too-long": Trouble(
        answers=(Refuse(400, error("invalid_request_error", "prompt is too long: 9 > 8")),),
        kind="context_overflow",
        verdict=("context_overflow", "error", "provider.context_overflow"),
        said="prompt is too long",
        status=400,
    ),
    "garbage": Trouble(
        answers=(Raw(b"\x00\xff\x1b[31mgarbage\r\n\r\n"),),
        kind="protocol",
        verdict=("provider_protocol", "error", "provider.protocol"),
        said="does not speak HTTP",
    ),
    "garbage-in-the-stream": Trouble(
        answers=(Raw(STREAM_HEAD + b"data: {oops\n\n\xff\xfe\x00\n\n"),),
        kind="protocol",
        verdict=("provider_protocol", "error", "provider.protocol"),
        said="JSON",
        status=200,
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
    jobs = [trouble.job(name, form) for name, trouble in troubles.items() for form in FORMS]
    jobs = [
        Job(j.name, in_words_of(j.form, j.script), j.form, j.recipe, j.provider, known=j.known)
        for j in jobs
    ]
    return carry_out(folder, jobs, "-j", "4", *arguments)


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("passing"), PASSING)


@pytest.fixture(scope="module")
def errored(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("errored"), ERRORED, "--progress", "plain")


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return carried_out(tmp_path_factory.mktemp("failed"), FAILED)


def check(session: Outcome, trouble: Trouble, ran: Ran) -> None:
    assert len(session.calls) == len(session.requests), "one row for each request"
    step = 1 if trouble.script is not None and len(trouble.script) == 1 else 2
    rows = [call for call in session.calls if call["step"] == step]
    assert [row["try"] for row in rows] == list(range(1, trouble.tries + 1))
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
    assert trouble.said in (session.folder / ".." / ".." / ".." / "summary.md").read_text()
    assert KEY not in session.detail


def cases(troubles: Mapping[str, Trouble]) -> list[Any]:
    return [
        pytest.param(f"{name}.{form}", trouble, id=f"{name}.{form}")
        for name, trouble in troubles.items()
        for form in FORMS
    ]


@pytest.mark.parametrize(("name", "trouble"), cases(PASSING))
def test_what_can_be_mended_by_trying_again_passes(
    passing: Ran, name: str, trouble: Trouble
) -> None:
    assert passing.exit_code == 0
    check(passing.session(name), trouble, passing)


@pytest.mark.parametrize(("name", "trouble"), cases(ERRORED))
def test_a_provider_that_fails_ends_the_session_errored(
    errored: Ran, name: str, trouble: Trouble
) -> None:
    assert errored.exit_code == 3
    session = errored.session(name)
    check(session, trouble, errored)
    assert {attempt["error_kind"] for attempt in session.attempts} == {"provider"}


@pytest.mark.parametrize(("name", "trouble"), cases(FAILED))
def test_a_reply_that_is_no_good_ends_the_session_failed(
    failed: Ran, name: str, trouble: Trouble
) -> None:
    assert failed.exit_code == 1
    check(failed.session(name), trouble, failed)
