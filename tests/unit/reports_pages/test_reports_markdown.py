"""The Markdown page: what a reviewer reads first, and nothing that others wrote comes alive."""

import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import report_samples
from golden_file import agrees
from harness_batch_reports import markdown, transcript
from harness_batch_reports.records import BatchReport, Part
from hostile_texts import HOSTILE, MARK
from inert_pages import is_inert


@pytest.mark.parametrize("name", ["nightly", "passing", "review"])
def test_a_page_is_what_it_was(request: pytest.FixtureRequest, name: str) -> None:
    page = markdown.summary(getattr(report_samples, name)())
    is_inert(page)
    agrees(request, f"reports/summary-{name}.md", page)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_hostile_text_stays_text(text: str) -> None:
    report = report_samples.hostile(text)
    is_inert(markdown.summary(report))
    is_inert(markdown.comment(report))


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.sampled_from("`|<>[]()!#@*_~\\\n\r &;:-=EVIL"), max_size=80))
def test_no_mixture_of_markup_gets_out_of_its_code(text: str) -> None:
    is_inert(markdown.summary(report_samples.hostile(f"{MARK}{text}{MARK}")))


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_a_transcript_of_hostile_text_stays_text(text: str) -> None:
    talk = report_samples.transcript()
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("text", {"text": text}),
        ("reasoning", {"text": text}),
        ("tool_use", {"name": text, "state": {"type": text, "title": text, "input": {text: text},
                                              "output": text, "error": text}}),
        ("step_finish", {"usage": {"input": text}, "cost_usd": text, "reason": text}),
        ("subtask", {"child_session": text, "agent": text, "description": text}),
        ("compaction", {"summary": text}),
        (text, {text: text}),
    ]  # fmt: skip
    parts = tuple(
        Part(part_id=f"p{idx}", message_id="m", idx=idx, type=kind, body=body)
        for idx, (kind, body) in enumerate(bodies)
    )
    said = evolve(talk.messages[1], parts=parts, error=text, model=text)
    is_inert(transcript.markdown(evolve(talk, messages=(said,))))


def test_the_verdict_is_the_first_line() -> None:
    first = markdown.summary(report_samples.nightly()).split("\n")[0]
    assert first == (
        "## ❌ harness-batch: 2 of 8 sessions failed, 1 errored, 1 cancelled, 1 skipped"
    )
    assert markdown.summary(report_samples.passing()).startswith(
        "## ✅ harness-batch: the session passed"
    )


def test_the_table_has_the_worst_first_and_of_them_the_dearest() -> None:
    rows = [
        line for line in markdown.summary(report_samples.nightly()).split("\n") if " | `fix" in line
    ]
    items = [re.search(r"package=(\w+)", row) for row in rows if row.startswith(("| ❌", "| ✅"))]
    assert [item[1] for item in items if item] == ["docs", "cli", "plugins", "core"]


def test_unpriced_calls_are_said_and_an_unknown_cost_is_never_0() -> None:
    page = markdown.summary(report_samples.nightly())
    assert (
        "**Unpriced:** 2 model calls of 46 have no known price; the true cost is above $1.38."
        in page
    )
    nothing = report_samples.changed(report_samples.passing(), cost_usd=None, unpriced_calls=9)
    page = markdown.summary(nothing)
    assert "**unpriced** ·" in page
    assert "$0" not in page


def test_what_was_denied_stands_with_the_lines_that_would_allow_it() -> None:
    page = markdown.summary(report_samples.nightly())
    assert '  bash:\n    "git push origin HEAD": allow' in page
    assert "`edit: .github/**: deny` of `recipe:recipes/fix-lint.yaml:14`" in page


def big(report: BatchReport, sessions: int) -> BatchReport:
    one = report.sessions[1]
    return evolve(
        report,
        sessions=tuple(
            evolve(one, item_key=f"fix-lint/n={n}", answer="a" * 5_000, detail="d" * 500)
            for n in range(sessions)
        ),
    )


def test_a_page_too_long_is_cut_at_its_end_and_says_so() -> None:
    report = big(report_samples.nightly(), 2_000)
    page = markdown.summary(report)
    assert 800 * 1024 < len(page.encode()) <= markdown.SUMMARY_BYTES
    assert "**Cut here**: " in page
    assert "do not fit into 921,600 bytes" in page
    assert "… and 1,000 more sessions: 1000 failed." in page
    assert "[CI job](https://ci.example/run/7)" in page


def test_a_comment_holds_65536_characters_and_keeps_verdict_and_table() -> None:
    for report in (big(report_samples.nightly(), 400), report_samples.hostile("|é`" * 500)):
        page = markdown.comment(report)
        assert len(page) <= markdown.COMMENT_CHARACTERS
        assert page.startswith("## ❌ harness-batch: ")
        assert "| Outcome | Item |" in page


def test_a_short_page_is_not_cut() -> None:
    assert "Cut here" not in markdown.comment(report_samples.nightly())


def test_a_run_without_sessions_has_a_page() -> None:
    page = markdown.summary(evolve(report_samples.passing(), sessions=(), denials=()))
    assert "no session: nothing was planned for this run" in page


def test_the_model_is_a_column_when_there_are_several() -> None:
    report = report_samples.nightly()
    first = evolve(report.sessions[0], model="openai/gpt-6")
    page = markdown.summary(evolve(report, sessions=(first, *report.sessions[1:])))
    assert "| Outcome | Item | Model | Why |" in page
    assert "`openai/gpt-6`" in page
