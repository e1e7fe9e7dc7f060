"""Screen, result.json, transcript, and GitHub's commands."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
from attrs import evolve
from rich.cells import cell_len

import report_samples
from golden_file import agrees
from harness_batch_reports import github, result_json, transcript
from harness_batch_reports.console import COLOURED, Screen, screen
from harness_batch_reports.records import Notice
from hostile_texts import HOSTILE

NEAR = Path("/home/ci/app")
WRITTEN = {
    "junit": report_samples.FOLDER / "junit.xml",
    "summary": report_samples.FOLDER / "summary.md",
}


@pytest.mark.parametrize("name", ["nightly", "passing", "review"])
def test_a_screen_is_what_it_was(request: pytest.FixtureRequest, name: str) -> None:
    text = screen(getattr(report_samples, name)(), Screen(near=NEAR), WRITTEN)
    agrees(request, f"reports/screen-{name}.txt", text)


def test_a_usual_screen_has_at_most_24_lines_of_80_cells() -> None:
    for report in (report_samples.passing(), report_samples.review()):
        lines = screen(report, Screen(near=NEAR), WRITTEN).split("\n")
        assert len(lines) <= 24
        assert max(map(cell_len, lines)) <= 80


def test_a_screen_shows_the_patch_and_the_reports() -> None:
    text = screen(report_samples.passing(), Screen(near=NEAR), WRITTEN)
    assert ".harness/runs/run_7/items/fix-lint/attempt-1/change.patch" in text
    assert "  junit    .harness/runs/run_7/junit.xml" in text
    assert "harness-batch apply ses_core" in text


def test_many_sessions_are_counted_not_listed() -> None:
    one = report_samples.passing().sessions[0]
    many = tuple(evolve(one, item_key=f"fix-lint/n={n}") for n in range(500))
    text = screen(evolve(report_samples.passing(), sessions=many))
    assert text.startswith("All 500 sessions passed (exit code 0)")
    assert "… and 492 more sessions: 492 passed" in text
    assert text.count("\n") <= 24


def test_colour_comes_only_when_it_is_asked_for() -> None:
    assert "\x1b" not in screen(report_samples.nightly())
    coloured = screen(report_samples.nightly(), Screen(palette=COLOURED))
    assert re.sub(r"\x1b\[\d*m", "", coloured) == screen(report_samples.nightly())


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_hostile_text_cannot_move_the_cursor_or_command_a_log(text: str) -> None:
    shown = screen(report_samples.hostile(text))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", shown)
    assert not re.search(r"^\s*::|##(vso)?\[", shown, re.IGNORECASE | re.MULTILINE)
    lines = [line for line in shown.split("\n") if "harness-batch" not in line]
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize("name", ["nightly", "passing", "review"])
def test_a_result_is_what_it_was_and_keeps_its_schema(
    request: pytest.FixtureRequest, name: str
) -> None:
    result = result_json.result(getattr(report_samples, name)())
    _schema().validate(result)
    text = result_json.as_text(result)
    assert json.loads(text) == result
    agrees(request, f"reports/result-{name}.json", text)


def _schema() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(result_json.result_schema())
    return jsonschema.Draft202012Validator(result_json.result_schema())


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_a_result_of_hostile_text_is_lossless_and_safe_to_print(text: str) -> None:
    report = report_samples.hostile(text)
    result = result_json.result(evolve(report, sessions=report.sessions[:1]))
    _schema().validate(result)
    printed = result_json.as_text(result)
    printed.encode()
    assert json.loads(printed)["sessions"][0]["answer"] == text
    assert not re.search(r"##(vso)?\[|[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed, re.IGNORECASE)


def test_a_result_says_what_it_cost_exactly_and_what_has_no_price() -> None:
    totals = result_json.result(report_samples.nightly())["totals"]
    assert (totals["cost_usd"], totals["unpriced_calls"]) == ("1.3834", 2)
    unknown = report_samples.changed(report_samples.passing(), cost_usd=None, unpriced_calls=9)
    totals = result_json.result(unknown)["totals"]
    assert (totals["cost_usd"], totals["unpriced_calls"]) == (None, 9)


def test_an_answer_in_json_stands_there_parsed() -> None:
    session = result_json.result(report_samples.review())["sessions"][0]
    assert session["answer_json"]["verdict"] == "request_changes"
    assert result_json.result(report_samples.passing())["sessions"][0]["answer_json"] is None


def test_a_transcript_is_what_it_was(request: pytest.FixtureRequest) -> None:
    talk = report_samples.transcript()
    agrees(request, "reports/transcript.md", transcript.markdown(talk))


def test_a_transcript_as_json_has_every_message_part_and_call() -> None:
    document = transcript.as_json(report_samples.transcript())
    assert json.loads(json.dumps(document)) == document
    assert [message["role"] for message in document["messages"]] == [
        "user",
        "assistant",
        "assistant",
    ]
    assert document["messages"][1]["parts"][3]["body"]["state"]["output"] == "1 failed\nexit code 1"
    assert [call["try"] for call in document["model_calls"]] == [1, 2]
    assert document["tool_calls"][0]["tool"] == "bash"


def test_annotations_are_at_most_ten_worst_first_with_the_rest_counted() -> None:
    bad = report_samples.nightly().sessions[1]
    many = tuple(evolve(bad, item_key=f"fix-lint/n={n:03}") for n in range(40))
    lines = github.annotations(evolve(report_samples.nightly(), sessions=many)).splitlines()
    assert len(lines) == 10
    assert lines[0] == (
        "::error title=fix-lint/n=000,file=recipes/fix-lint.yaml,line=1"
        "::check tests failed: exit code 1"
    )
    assert lines[-1] == "::error title=harness-batch::31 more sessions did not pass"


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_an_annotation_of_hostile_text_is_one_command(text: str) -> None:
    lines = github.annotations(report_samples.hostile(text)).splitlines()
    assert len(lines) == 4
    assert all(re.fullmatch(r"::error title=[^:,]*,file=[^:,]*,line=1::.*", line) for line in lines)


def test_output_of_others_stands_between_stop_and_resume() -> None:
    assert github.stopped("::error::x", "t") == "::stop-commands::t\n::error::x\n::t::\n"
    assert github.stopped("x") != github.stopped("x")


def test_notices_of_a_whole_run_have_no_session() -> None:
    notice = Notice(session_id=None, level="info", text="t", ts=None)
    report = evolve(report_samples.passing(), notices=(notice,))
    assert result_json.result(report)["notices"] == [
        {"level": "info", "text": "t", "session_id": None, "at": None}
    ]
