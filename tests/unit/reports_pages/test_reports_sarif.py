"""SARIF of reviews: valid, stable from night to night, and no path leads out of the repository."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import report_samples
from harness_batch.recipe.places import bundled_recipes
from harness_batch.recipe.yaml_text import read_yaml
from harness_batch_reports import github, sarif
from harness_batch_reports.findings import (
    clean_path,
    every_finding,
    findings,
    findings_schema,
    findings_told,
)
from harness_batch_reports.records import BatchReport
from hostile_texts import HOSTILE

SPECIFICATION = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parent / "sarif-2.1.0.schema.json").read_text("utf-8")),
    format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
)
ONE: dict[str, Any] = {
    "severity": "blocker",
    "rule": "wrong-result",
    "path": "src/money.py",
    "line": 12,
    "code": "    share = cents // parts",
    "message": "The remainder is lost when the amount does not divide.",
    "suggestion": "Use divmod.",
}


def reviewed(*found: dict[str, Any], **changes: Any) -> BatchReport:
    answer = json.dumps({"verdict": "comment", "summary": "s", "findings": list(found)})
    return report_samples.changed(report_samples.review(), answer=answer, **changes)


def log_of(report: BatchReport) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(sarif.render(report))
    SPECIFICATION.validate(log)
    return log


def results(report: BatchReport) -> list[dict[str, Any]]:
    (run,) = log_of(report)["runs"]
    found: list[dict[str, Any]] = run["results"]
    return found


def test_a_finding_is_a_result_with_rule_level_place_and_fingerprint() -> None:
    (result,) = results(reviewed(ONE))
    assert (result["ruleId"], result["level"]) == ("wrong-result", "error")
    assert result["message"]["text"].startswith("The remainder is lost")
    (place,) = (location["physicalLocation"] for location in result["locations"])
    assert place["artifactLocation"] == {"uri": "src/money.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 12, "snippet": {"text": ONE["code"]}}
    assert list(result["partialFingerprints"]) == [sarif.FINGERPRINT]


def test_a_run_is_named_after_its_recipe_and_lists_its_rules() -> None:
    (run,) = log_of(reviewed(ONE, {**ONE, "rule": "race", "severity": "minor"}))["runs"]
    assert run["automationDetails"] == {"id": "review-pr"}
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["wrong-result", "race"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1]
    assert run["invocations"][0]["executionSuccessful"] is True


def test_a_fingerprint_stays_when_lines_move_and_words_change_but_the_code_does_not() -> None:
    def of(**changes: Any) -> str:
        (result,) = results(reviewed({**ONE, **changes}))
        return str(result["partialFingerprints"][sarif.FINGERPRINT])

    assert of() == of(line=99) == of(message="other words") == of(code="share = cents // parts")
    assert len({of(), of(rule="race"), of(path="src/other.py"), of(code="x")}) == 4
    assert of(code="") == of(code="", line=3) != of(code="", message="other words")


def test_two_findings_of_one_fingerprint_are_told_apart_and_twins_are_one() -> None:
    twice = results(reviewed(ONE, ONE, {**ONE, "line": 40}))
    prints = [result["partialFingerprints"][sarif.FINGERPRINT] for result in twice]
    assert [one[-2:] for one in prints] == [":1", ":2"]
    assert prints[0][:-2] == prints[1][:-2]


def test_a_review_that_found_nothing_has_an_empty_run_and_closes_what_was_found_before() -> None:
    assert results(reviewed()) == []
    assert sarif.has_reviews(reviewed())


def test_a_run_without_reviews_has_no_sarif() -> None:
    assert not sarif.has_reviews(report_samples.nightly())
    assert log_of(report_samples.nightly())["runs"] == []


@pytest.mark.parametrize(
    "answer",
    ["prose", "[1]", '{"findings": 1}', '{"findings": [{"message": "no severity"}]}',
     '{"findings": [{"severity": "huge", "message": "m"}]}', '{"verdict": "approve"}', "null"],
)  # fmt: skip
def test_an_answer_of_another_shape_is_no_review(answer: str) -> None:
    report = report_samples.changed(report_samples.review(), answer=answer)
    assert findings(report.sessions[0]) is None


def test_a_bare_list_is_a_review_too() -> None:
    answer = json.dumps([{"severity": "note", "message": "A typo."}])
    (one,) = every_finding(report_samples.changed(report_samples.review(), answer=answer))
    assert (one.level, one.rule, one.where) == ("note", "finding", "")


@pytest.mark.parametrize(
    ("given_path", "kept"),
    [
        ("src/a.py", "src/a.py"),
        ("./src//a.py", "src/a.py"),
        ("src\\win\\a.py", "src/win/a.py"),
        ("src/../lib/a.py", "lib/a.py"),
        ("/home/ci/app/src/a.py", "src/a.py"),
        ("/etc/passwd", None),
        ("../secret", None),
        ("src/../../secret", None),
        ("\\\\host\\share", None),
        ("C:\\Windows\\a", None),
        ("file:///etc/passwd", None),
        ("https://evil.example/a", None),
        ("javascript:alert(1)", None),
        ("~/.ssh/id_ed25519", None),
        ("a\nb", None),
        ("a\u202eb", None),
        ("", None),
        (".", None),
        ("x" * 2_000, None),
    ],
)
def test_a_path_is_below_the_repositorys_top_or_none(given_path: str, kept: str | None) -> None:
    assert clean_path(given_path, "/home/ci/app") == kept
    (result,) = results(reviewed({**ONE, "path": given_path}))
    assert ("locations" in result) == (kept is not None)


@given(st.text(st.sampled_from("./\\~:%a\u202e \n#?&"), max_size=24))
def test_no_path_leads_out(given_path: str) -> None:
    path = clean_path(given_path)
    if path is not None:
        assert not path.startswith(("/", "~"))
        assert not {"..", "", "."} & set(path.split("/"))
        results(reviewed({**ONE, "path": given_path}))


def test_a_refused_path_is_told() -> None:
    (run,) = log_of(reviewed({**ONE, "path": "/etc/passwd"}))["runs"]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"] == "the path '/etc/passwd' is not one of the repository"


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_hostile_findings_are_valid_and_link_nowhere(text: str) -> None:
    found = {**ONE, "path": text[:2_000], "code": text, "message": text or "m", "suggestion": text}
    report = reviewed(found, item_key=text, recipe=text or "r")
    printed = sarif.render(report).decode("ascii")
    log = json.loads(printed)
    SPECIFICATION.validate(log)
    for result in log["runs"][0]["results"]:
        assert "](" not in result["message"]["text"]
        assert "\x1b" not in json.dumps(result["message"], ensure_ascii=False)
    assert "##vso[" not in printed.lower()


def test_several_repositories_are_runs_of_their_own() -> None:
    report = reviewed(ONE)
    one = report.sessions[0]
    two = evolve(report, sessions=(
        evolve(one, item_key="review-pr@api", repo="/src/api"),
        evolve(one, item_key="review-pr@web", repo="/src/web"),
    ))  # fmt: skip
    names = [run["automationDetails"]["id"] for run in log_of(two)["runs"]]
    assert names == ["review-pr/api", "review-pr/web"]


def test_what_the_bundled_review_asks_for_is_a_review() -> None:
    file = bundled_recipes()["review-pr"]
    recipe = read_yaml(file.read_text("utf-8"), file).value
    asked = recipe["response"]["json_schema"]["properties"]["findings"]["items"]
    known = findings_schema()["$defs"]["finding"]["properties"]
    assert asked["properties"].keys() <= known.keys()
    assert set(findings_schema()["$defs"]["finding"]["required"]) <= set(asked["required"])
    for severity in asked["properties"]["severity"]["enum"]:
        for rule in asked["properties"]["rule"]["enum"]:
            jsonschema.validate({"findings": [{**ONE, "severity": severity, "rule": rule}]},
                                findings_schema())  # fmt: skip


def test_findings_are_annotations_at_their_own_lines_after_the_sessions() -> None:
    minor = {**ONE, "severity": "minor", "path": "/etc/passwd"}
    lines = github.annotations(reviewed(minor, {**ONE, "end_line": 14})).splitlines()
    assert lines == [
        "::error title=review-pr%3A wrong-result,file=src/money.py,line=12,endLine=14"
        "::The remainder is lost when the amount does not divide.",
        "::notice title=review-pr%3A wrong-result"
        "::The remainder is lost when the amount does not divide.",
    ]
    many = [{**ONE, "line": line} for line in range(1, 30)]
    lines = github.annotations(reviewed(*many, status="failed", reason="check:x")).splitlines()
    assert len(lines) == github.ANNOTATIONS
    assert lines[0].startswith("::error title=review-pr,")
    assert lines[-1] == "::error title=harness-batch::21 more findings"


def test_findings_are_counted_in_words() -> None:
    found = every_finding(reviewed(ONE, {**ONE, "severity": "minor"}, {**ONE, "line": 2}))
    assert findings_told(found) == "3 findings: 2 blocker, 1 minor"
    assert findings_told(()) == ""
