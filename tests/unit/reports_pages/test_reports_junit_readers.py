"""JUnit as two independent readers count it: junitparser, and the parser of junit2html."""

from collections import Counter
from collections.abc import Sequence

import pytest
from junit2htmlreport.parser import Junit
from junitparser import Error, Failure, JUnitXml, Skipped

import report_samples
from harness_batch_reports.junit import render
from harness_batch_reports.junit_dialects import DIALECTS

NIGHT = {"passed": 5, "failure": 3, "error": 2, "skipped": 2}
"""Eight sessions and four checks: what the sample's cases come out as."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_junitparser_counts_what_is_there(dialect: str) -> None:
    document = JUnitXml.fromstring(render(report_samples.nightly(), dialect))
    outcomes = Counter(_outcome(case.result) for suite in document for case in suite)
    assert outcomes == NIGHT
    assert [(s.tests, s.failures, s.errors, s.skipped) for s in document] == [(12, 3, 2, 2)]
    assert (document.tests, document.failures, document.errors) == (12, 3, 2)


def _outcome(results: Sequence[object]) -> str:
    kinds = {Failure: "failure", Error: "error", Skipped: "skipped"}
    found = [word for one in results for kind, word in kinds.items() if type(one) is kind]
    assert len(found) <= 1, "never two of them"
    return found[0] if found else "passed"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_junit2html_counts_what_is_there(dialect: str) -> None:
    document = Junit(xmlstring=render(report_samples.nightly(), dialect).decode())
    (suite,) = document.suites
    assert len(suite.all()) == 12
    assert len(suite.failed()) == NIGHT["failure"] + NIGHT["error"]
    assert len(suite.skipped()) == NIGHT["skipped"]
    assert len(suite.passed()) == NIGHT["passed"]
    assert "fix-lint/package=cli / tests" in {case.name for case in suite.failed()}
