"""Long conversations through the command line: the window never overflows, the answer is kept."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from attrs import define, field

from functional_cli import FORMS, Form, Job, Ran, carry_out
from wire import Call, Refuse, Reply, Say, Seen, Usage
from wire.script import Answer

LINES = "\n".join(f"line {n:04}: {'lorem ipsum ' * 6}" for n in range(2000))
SUMMARY = "## Objective\nRead the book.\n## Work state\nDone: summary number {}."
RESUMED = "The conversation so far was too long and is summarised here"
TOO_LONG = "prompt is too long: 40000 tokens > 32000 maximum"
ANSWER = "The book is read to its end."
RECIPE = {
    "prompt": "Read book.txt from its beginning to its end. The password is Rumpelstilz.",
    "permissions": {"read": "allow"},
    "checks": None,
    "expect": None,
}
WINDOW = 32_000


def tokens_of(seen: Seen) -> int:
    return len(seen.body) // 4


def said_of(seen: Seen) -> str:
    return json.dumps(seen.json["messages"], ensure_ascii=False)


@define
class Reader:
    """A model that reads a book, a page a step; it knows only how often it was asked."""

    steps: int
    lines: int = 50
    """Of a page: about 4,000 bytes."""
    refuses: Callable[[Seen, int], bool] = lambda seen, asked: False
    asked: int = 0

    def __call__(self, seen: Seen) -> Answer:
        if self.refuses(seen, self.asked):
            error = {"type": "invalid_request_error", "message": TOO_LONG}
            code = {"code": "context_length_exceeded"}
            return Refuse(400, {"type": "error", "error": error | code})
        self.asked += 1
        if self.asked > self.steps:
            return Reply(Say(ANSWER), usage=Usage(input=tokens_of(seen), output=20))
        page = {"file_path": "book.txt", "offset": 1 + self.asked * 4, "limit": self.lines}
        usage = Usage(input=tokens_of(seen), output=40)
        return Reply(Say(f"Page {self.asked}."), Call("read", page), usage=usage)


@define
class Writer:
    """A small model that summarises."""

    asked: int = 0
    requests: list[Seen] = field(factory=list)

    def __call__(self, seen: Seen) -> Answer:
        self.asked += 1
        return Reply(Say(SUMMARY.format(self.asked)), usage=Usage(input=1000, output=100))


def model(**changes: Any) -> dict[str, Any]:
    cost = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75}
    return {"context": WINDOW, "output": 4000, "cost": cost} | changes


def unknown_window() -> dict[str, Any]:
    return {"cost": model()["cost"]}


def job(name: str, form: Form, reader: Reader, **more: Any) -> Job:
    limits = {"steps": 500, "output_tokens": 4000} | more.pop("limits", {})
    recipe = RECIPE | {"limits": limits}
    return Job(f"{name}.{form}", reader, form, recipe, small=Writer(), model=model(), **more)


def once_long(seen: Seen, asked: int) -> bool:
    """The provider's own window is full at the third page, until the past is summarised."""
    return asked == 3 and RESUMED not in said_of(seen)


def always_long(seen: Seen, asked: int) -> bool:
    return asked == 3


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [
        entry
        for form in FORMS
        for entry in (
            job("by-usage", form, Reader(steps=40)),
            Job(
                f"by-error.{form}",
                Reader(steps=6, refuses=once_long),
                form,
                RECIPE,
                small=Writer(),
                model=unknown_window(),
            ),
            Job(f"alone.{form}", Alone(), form, RECIPE, model=model()),
        )
    ]
    return carry_out(tmp_path_factory.mktemp("compact"), jobs, files={"book.txt": LINES})


@define
class Alone:
    """A model without a small one beside it: it summarises for itself."""

    reader: Reader = field(factory=lambda: Reader(steps=40))
    writer: Writer = field(factory=Writer)

    def __call__(self, seen: Seen) -> Answer:
        return self.writer(seen) if is_summary(seen) else self.reader(seen)


def is_summary(seen: Seen) -> bool:
    return "<conversation>" in said_of(seen)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["by-usage", "by-error", "alone"])
def test_the_session_goes_on_after_a_summary_and_its_answer_is_its_own(
    passing: Ran, name: str, form: Form
) -> None:
    session = passing.session(f"{name}.{form}")

    assert (session.status, session.reason) == ("passed", None)
    assert (session.folder / "answer.md").read_text(encoding="utf-8") == ANSWER
    summaries = [call for call in session.calls if call["purpose"] == "compaction"]
    assert summaries
    assert session.row["steps"] == sum(
        call["purpose"] == "step" and call["error_kind"] is None for call in session.calls
    )
    assert "What came before was summarised" in session.transcript
    assert "Rumpelstilz" in said_of(session.requests[-1]), "the task stays word for word"
    assert RESUMED in said_of(session.requests[-1])


@pytest.mark.parametrize("form", FORMS)
def test_the_small_model_summarises_at_its_own_price_without_tools(
    passing: Ran, form: Form
) -> None:
    session = passing.session(f"by-usage.{form}")
    summaries = [call for call in session.calls if call["purpose"] == "compaction"]
    requests = [seen for seen in passing.requests if seen.model == f"by-usage.{form}-small"]

    assert len(summaries) == len(requests) > 1
    # 1,000 tokens at 1 USD and 100 at 2 USD per million.
    assert {call["cost_usd"] for call in summaries} == {Decimal("0.0012")}
    assert {call["request_model"] for call in summaries} == {f"by-usage.{form}-small"}
    assert all("tools" not in seen.json for seen in requests)
    assert session.row["cost_usd"] == sum(call["cost_usd"] for call in session.calls)
    assert session.row["input_tokens"] == sum(call["input_tokens"] for call in session.calls)


@pytest.mark.parametrize("form", FORMS)
def test_the_summary_before_is_merged_into_the_next(passing: Ran, form: Form) -> None:
    requests = [seen for seen in passing.requests if seen.model == f"by-usage.{form}-small"]

    assert "(earlier summary)" not in said_of(requests[0])
    assert "(earlier summary)" in said_of(requests[1])
    assert "summary number 1." in said_of(requests[1])


@pytest.mark.parametrize("form", FORMS)
def test_no_request_is_longer_than_the_window(passing: Ran, form: Form) -> None:
    session = passing.session(f"by-usage.{form}")

    assert len(session.requests) == 41
    for seen in session.requests:
        asked = seen.json.get("max_tokens") or seen.json["max_completion_tokens"]
        assert tokens_of(seen) + asked <= WINDOW
    assert max(map(tokens_of, session.requests)) > WINDOW // 2


@pytest.mark.parametrize("form", FORMS)
def test_an_overflow_that_the_provider_tells_is_no_step_and_is_not_repeated(
    passing: Ran, form: Form
) -> None:
    calls = passing.session(f"by-error.{form}").calls

    kinds = [(call["purpose"], call["error_kind"]) for call in calls]
    assert kinds.count(("step", "context_overflow")) == 1
    assert kinds.count(("compaction", None)) == 1
    assert kinds.count(("step", None)) == 7


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [job("hopeless", form, Reader(steps=6, refuses=always_long)) for form in FORMS]
    return carry_out(tmp_path_factory.mktemp("hopeless"), jobs, files={"book.txt": LINES})


@pytest.mark.parametrize("form", FORMS)
def test_a_second_overflow_right_after_ends_the_session_errored(hopeless: Ran, form: Form) -> None:
    assert hopeless.exit_code == 3
    session = hopeless.session(f"hopeless.{form}")

    assert (session.status, session.reason) == ("errored", "context_overflow")
    assert TOO_LONG in session.detail
    calls = sorted(session.calls, key=lambda call: call["model_call_id"])
    assert [(call["purpose"], call["error_kind"]) for call in calls][-3:] == [
        ("step", "context_overflow"),
        ("compaction", None),
        ("step", "context_overflow"),
    ]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    def dear(seen: Seen) -> Answer:
        return Reply(Say("Too dear."), usage=Usage(input=120_000, output=10))

    jobs = [
        # Full after 17 pages of about 200,000 tokens in all; the summary takes the rest.
        Job(
            "tokens",
            Reader(steps=100),
            "anthropic",
            RECIPE | {"limits": {"tokens": 400_000, "output_tokens": 4000}},
            small=dear,
            model=model(),
        ),
    ]
    return carry_out(tmp_path_factory.mktemp("limited"), jobs, files={"book.txt": LINES})


def test_what_a_summary_uses_counts_against_the_limits(limited: Ran) -> None:
    assert limited.exit_code == 1
    session = limited.session("tokens")
    used = [call["input_tokens"] + call["output_tokens"] for call in session.calls]

    assert session.reason == "max_tokens"
    assert sum(call["purpose"] == "compaction" for call in session.calls) == 1
    assert session.row["input_tokens"] + session.row["output_tokens"] == sum(used)
    # Without the summary 120,000 tokens more would have been there for steps.
    assert 300_000 < sum(used) < 520_000


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    jobs = [job("long", "anthropic", Reader(steps=400))]
    return carry_out(tmp_path_factory.mktemp("long"), jobs, files={"book.txt": LINES})


def test_a_session_of_400_steps_survives_a_window_of_32_thousand_tokens(long_run: Ran) -> None:
    session = long_run.session("long.anthropic")

    assert session.status == "passed"
    assert session.row["steps"] == 401
    assert (session.folder / "answer.md").read_text(encoding="utf-8") == ANSWER
    assert len(session.requests) == 401
    assert max(map(tokens_of, session.requests)) < WINDOW
    summaries = sum(call["purpose"] == "compaction" for call in session.calls)
    assert 15 < summaries < 60
    assert len(session.tools) == 400
