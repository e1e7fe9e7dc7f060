"""JUnit: what CI systems count, in every dialect, whatever was written in the run."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

import report_samples
from golden_file import agrees
from harness_batch_reports.junit import render
from harness_batch_reports.junit_dialects import DIALECTS
from harness_batch_reports.records import BatchReport, ReportError
from hostile_texts import HOSTILE
from jenkins_schema import jenkins_schema

RULES = etree.XMLSchema(etree.parse(str(Path(__file__).parent / "junit_rules.xsd")))
STRICT = ("plain", "surefire", "jenkins")

ANY_TEXT = st.text(st.characters(), max_size=300) | st.sampled_from(HOSTILE[:20])


def parsed(report: BatchReport, dialect: str = "plain") -> ET.Element:
    return ET.fromstring(render(report, dialect))


def cases(report: BatchReport, dialect: str = "plain") -> dict[str, ET.Element]:
    return {case.get("name", ""): case for case in parsed(report, dialect).iter("testcase")}


def holds_the_rules(document: bytes, dialect: str) -> None:
    tree = etree.fromstring(document, etree.XMLParser(huge_tree=True))
    RULES.assertValid(tree)
    names = [(case.get("classname"), case.get("name")) for case in tree.iter("testcase")]
    assert len(names) == len(set(names)), "GitLab drops the second case of one name"
    for suite in tree.iter("testsuite"):
        times = [round(float(case.get("time")) * 1_000) for case in suite.iter("testcase")]
        assert sum(times) == round(float(suite.get("time")) * 1_000)
        for kind in ("failure", "error", "skipped"):
            said = suite.get("skipped" if kind == "skipped" else f"{kind}s")
            assert int(said) == len(suite.findall(f"testcase/{kind}"))
    jenkins = jenkins_schema()
    if jenkins is not None:
        jenkins.assertValid(tree if dialect in STRICT else without_more(tree))


def without_more(tree: etree._Element) -> etree._Element:
    """Without what gitlab and azure read and Jenkins' schema does not know; nothing else."""
    for case in tree.iter("testcase"):
        for properties in case.findall("properties"):
            case.remove(properties)
        for name in ("file", "line"):
            case.attrib.pop(name, None)
    return tree


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_night_in_each_dialect_is_what_it_was(
    request: pytest.FixtureRequest, dialect: str
) -> None:
    document = render(report_samples.nightly(), dialect)
    holds_the_rules(document, dialect)
    agrees(request, f"reports/junit-{dialect}.xml", document)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=25, deadline=None)
@given(text=ANY_TEXT, name=ANY_TEXT)
def test_whatever_is_written_in_a_run_the_document_parses_and_keeps_the_rules(
    dialect: str, text: str, name: str
) -> None:
    holds_the_rules(render(report_samples.hostile(text, name), dialect), dialect)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_hostile_text_neither_attaches_files_nor_colours_nor_commands(text: str) -> None:
    document = render(report_samples.hostile(text, "x"), "gitlab")
    holds_the_rules(document, "gitlab")
    shown = [*ET.fromstring(document).iter()]
    texts = [said for e in shown for said in (e.text or "", *e.attrib.values())]
    attached = [line for said in texts for line in said.split("\n") if "[[" in line]
    assert all(line.startswith("[[ATTACHMENT|.harness/runs/run_7/items/") for line in attached)
    assert not any("\x1b" in said or "\u202e" in said or "##vso[" in said.lower() for said in texts)


def test_one_case_a_session_and_one_a_check_named_after_both() -> None:
    found = cases(report_samples.nightly())
    assert len(found) == 8 + 4
    assert "fix-lint/package=cli" in found
    assert "fix-lint/package=cli / tests" in found
    assert "fix-lint/package=cli / patch" in found


@pytest.mark.parametrize(
    ("item", "element", "code"),
    [
        ("api", "error", "provider.auth"),
        ("cli", "failure", "check.tests"),
        ("docs", "failure", "limit.cost"),
        ("legacy", "skipped", "limit.cost"),
        ("web", "skipped", "run.cached"),
        ("zeta", "error", "run.cancelled"),
    ],
)
def test_a_session_that_did_not_pass_says_so_once_with_a_stable_type(
    item: str, element: str, code: str
) -> None:
    case = cases(report_samples.nightly())[f"fix-lint/package={item}"]
    outcomes = [child for child in case if child.tag in {"failure", "error", "skipped"}]
    assert [(child.tag, child.get("type")) for child in outcomes] == [(element, code)]


def test_passed_sessions_have_no_outcome_and_a_flaky_one_says_so_in_surefire() -> None:
    found = cases(report_samples.nightly(), "surefire")
    assert not [child for child in found["fix-lint/package=core"] if child.tag != "system-out"]
    (flaky,) = found["fix-lint/package=plugins"].findall("flakyError")
    assert (flaky.get("type"), flaky.get("message")) == (
        "provider.unavailable",
        "attempt 1 of 2: the provider was not available: HTTP 529: overloaded",
    )
    assert "items/fix-lint_package=plugins/attempt-1/" in (flaky.findtext("stackTrace") or "")


def test_a_session_that_failed_says_in_surefire_why_each_earlier_attempt_did() -> None:
    report = report_samples.nightly()
    (cli,) = (s for s in report.sessions if s.item_key == "fix-lint/package=cli")
    errored = evolve(cli.earlier[0], n=2, status="errored", reason="git", detail="no space")
    tried = evolve(cli, attempts=3, earlier=(errored, evolve(cli.earlier[0], n=1)))
    case = cases(evolve(report, sessions=(tried,)), "surefire")["fix-lint/package=cli"]
    assert [
        (child.tag, child.get("type"), child.get("message"))
        for child in case
        if child.tag.startswith(("rerun", "flaky"))
    ] == [
        (
            "rerunFailure",
            "check.tests",
            "attempt 1 of 3: check tests failed: timed out after 600 s",
        ),
        ("rerunError", "infra.git", "attempt 2 of 3: git failed: no space"),
    ]


def test_what_a_recipes_own_retry_mended_is_not_flaky() -> None:
    report = report_samples.changed(report_samples.nightly(), flaky=False)
    case = cases(report, "surefire")["fix-lint/package=plugins"]
    assert [child.tag for child in case if child.tag.startswith(("rerun", "flaky"))] == []


def test_the_agents_time_and_the_checks_times_add_up_to_the_suites() -> None:
    found = cases(report_samples.nightly())
    assert found["fix-lint/package=core"].get("time") == "172.000"
    assert found["fix-lint/package=core / tests"].get("time") == "12.500"
    assert found["fix-lint/package=core / lint"].get("time") == "0.750"
    assert found["fix-lint/package=legacy"].get("time") == "0.000"


def test_attachments_are_where_each_reader_looks_for_them() -> None:
    def attached(dialect: str) -> list[str]:
        out = cases(report_samples.nightly(), dialect)["fix-lint/package=cli"]
        lines = (out.findtext("system-out") or "").split("\n")
        return [line for line in lines if line.startswith("[[")]

    patch = "items/fix-lint_package=cli/attempt-2/change.patch"
    assert attached("plain")[0] == f"[[ATTACHMENT|{patch}]]"
    assert attached("gitlab") == [f"[[ATTACHMENT|.harness/runs/run_7/{patch}]]"]
    assert attached("jenkins")[0] == f"[[ATTACHMENT|/home/ci/app/.harness/runs/run_7/{patch}]]"
    assert len(attached("azure")) == 3


def test_the_recipe_is_a_cases_file_where_the_reader_knows_it() -> None:
    case = cases(report_samples.nightly(), "gitlab")["fix-lint/package=cli"]
    assert (case.get("file"), case.get("line")) == ("recipes/fix-lint.yaml", "1")
    assert "file" not in cases(report_samples.nightly(), "plain")["fix-lint/package=cli"].attrib


def test_a_cost_nobody_knows_is_called_unpriced_and_never_0() -> None:
    report = report_samples.changed(report_samples.passing(), cost_usd=None, unpriced_calls=9)
    case = cases(report, "gitlab")["fix-lint"]
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert properties["cost_usd"] == "unpriced"
    assert properties["unpriced_calls"] == "9"
    assert "cost: unpriced, 9 model calls" in (case.findtext("system-out") or "")


def test_exact_money_and_figures_stand_as_properties() -> None:
    suite = next(parsed(report_samples.nightly()).iter("testsuite"))
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert properties["cost_usd"] == "1.3834"
    assert properties["fix-lint/package=cli: cost_usd"] == "0.4211"
    assert properties["fix-lint/package=cli: patch_sha256"] == "ab" * 32


def test_several_repositories_are_suites_of_their_own() -> None:
    one = report_samples.passing().sessions[0]
    report = evolve(
        report_samples.passing(),
        sessions=(
            evolve(one, item_key="fix-lint@api", repo="/src/api"),
            evolve(one, item_key="fix-lint@web", repo="/src/web"),
        ),
    )
    assert [s.get("name") for s in parsed(report).iter("testsuite")] == [
        "fix-lint / api",
        "fix-lint / web",
    ]
    lone = evolve(report, sessions=report.sessions[:1])
    assert next(parsed(lone).iter("testcase")).get("classname") == "fix-lint.api", "as on its shard"


def test_sessions_with_one_key_stay_apart() -> None:
    one = report_samples.passing().sessions[0]
    twice = evolve(report_samples.passing(), sessions=(one, one))
    assert set(cases(twice)) == {
        "fix-lint", "fix-lint / tests", "fix-lint #2", "fix-lint / tests #2",
    }  # fmt: skip
    models = evolve(report_samples.passing(), sessions=(one, evolve(one, model="openai/gpt")))
    assert "fix-lint [openai/gpt]" in cases(models)


def test_azures_joint_names_fit_into_512_characters() -> None:
    report = report_samples.changed(
        report_samples.passing(), recipe="r" * 400, item_key="k" * 2_000
    )
    for case in parsed(report, "azure").iter("testcase"):
        assert len(f"{case.get('classname')}.{case.get('name')}") <= 512


def test_a_run_without_sessions_is_an_empty_document() -> None:
    document = render(evolve(report_samples.passing(), sessions=()))
    holds_the_rules(document, "plain")
    assert ET.fromstring(document).get("tests") == "0"


def test_the_same_run_gives_the_same_bytes() -> None:
    assert render(report_samples.nightly()) == render(report_samples.nightly())


def test_a_session_that_never_ended_is_an_error() -> None:
    report = report_samples.changed(
        report_samples.passing(), status=None, started_at=datetime(2026, 3, 1, tzinfo=UTC)
    )
    error = cases(report)["fix-lint"].find("error")
    assert error is not None
    assert error.get("type") == "infra.unfinished"


def test_an_unknown_dialect_names_those_there_are() -> None:
    with pytest.raises(ReportError, match="plain, surefire, gitlab, azure, jenkins"):
        render(report_samples.passing(), "nunit")
