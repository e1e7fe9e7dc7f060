"""The reports of a run through the command line: all there, and the same when made again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

REVIEW = """\
name: look
model: scripted/look-script.yaml
prompt: Review the code.
response:
  json_schema:
    type: object
    required: [findings]
    properties:
      findings: {type: array}
"""
FINDINGS = [
    {"severity": "minor", "rule": "naming", "path": "invoice/money.py", "line": 3, "message": "m"},
    {"severity": "blocker", "rule": "wrong-result", "path": "invoice/money.py", "line": 11,
     "code": "    return [share] * parts", "message": "The remainder is lost."},
]  # fmt: skip
SCRIPT = json.dumps(
    [{"text": "Done.", "calls": [{"name": "final_output", "arguments": {"findings": FINDINGS}}]}]
)
MADE = {
    "junit": "junit.xml",
    "markdown": "summary.md",
    "html": "report.html",
    "json": "result.json",
    "sarif": "report.sarif",
}


def harness_batch(cwd: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two recipes ran into `out/`, with copies of their page and findings."""
    home = tmp_path_factory.mktemp("reported")
    (home / "look.yaml").write_text(REVIEW)
    (home / "look-script.yaml").write_text(SCRIPT)
    assert harness_batch(home, "init", "--sample", "sample").returncode == 0
    done = harness_batch(
        home, "run", "fix-failing-test", "look.yaml", "--repo", "sample", "--out", "out",
        "--html", "copies/page.html", "--sarif", "copies/found.sarif",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (home / "screen.txt").write_bytes(done.stdout)
    return home


def test_a_run_leaves_its_page_and_findings_and_the_copies_are_the_same(ran: Path) -> None:
    page = (ran / "out/report.html").read_bytes()
    assert page == (ran / "copies/page.html").read_bytes()
    assert b"return [share + 1] * rest" in page, "the patch is on the page"
    found = (ran / "out/report.sarif").read_bytes()
    assert found == (ran / "copies/found.sarif").read_bytes()
    (run,) = json.loads(found)["runs"]
    assert run["automationDetails"]["id"] == "look"
    assert [result["ruleId"] for result in run["results"]] == ["wrong-result", "naming"]


def test_the_screen_names_the_reports_and_counts_checks_and_findings(ran: Path) -> None:
    said = (ran / "screen.txt").read_text("utf-8")
    assert "all 5 checks passed · 2 findings: 1 blocker, 1 minor" in said
    assert "  page      copies/page.html\n" in said
    assert "  sarif     copies/found.sarif\n" in said


def test_all_reports_made_again_are_the_same_byte_for_byte(ran: Path) -> None:
    words = ("--format", ",".join(MADE), "--out", "again")
    assert harness_batch(ran, "report", "out", *words).returncode == 0
    for name in MADE.values():
        assert (ran / "again" / name).read_bytes() == (ran / "out" / name).read_bytes(), name
    assert (
        harness_batch(ran, "report", "out", "--format", "html").stdout
        == (ran / "out/report.html").read_bytes()
    )


def test_annotations_stand_at_the_lines_of_the_findings(ran: Path) -> None:
    lines = harness_batch(ran, "report", "out", "--format", "github").stdout.decode().splitlines()
    assert lines == [
        "::error title=look%3A wrong-result,file=invoice/money.py,line=11::The remainder is lost.",
        "::notice title=look%3A naming,file=invoice/money.py,line=3::m",
    ]


def test_a_run_without_a_review_writes_no_findings_but_those_asked_for(ran: Path) -> None:
    words = ("--repo", "sample", "--out", "plain", "--sarif", "none.sarif")
    assert harness_batch(ran, "run", "fix-failing-test", *words).returncode == 0
    assert not (ran / "plain/report.sarif").exists()
    assert json.loads((ran / "none.sarif").read_text())["runs"] == []
