"""Outputs: a hostile model that writes for CI systems, browsers, terminals and XML readers."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from functional_cli import Ran, carry_out
from hostile_texts import HOSTILE, MARK
from inert_pages import is_inert
from security_bench import bash, hostile, told, write

TEXTS = [text for text in HOSTILE if len(text) < 10_000 and "\ud800" not in text]
PRINTED = "cat <<'END_OF_TEXT'\n" + "\n".join(TEXTS).replace("\0", "") + "\nEND_OF_TEXT"
RUNNER_FILES = (
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
)
TAMPER = (
    "; ".join(f'echo "EVIL=1" >> "${name}"' for name in RUNNER_FILES)
    + "; env | grep -c -e GITHUB_ -e ACTIONS_ -e RUNNER_"
)
NAMES = ["::error::EVIL.txt", "##vso[EVIL].txt", "[[ATTACHMENT|EVIL]].txt", "<img src=EVIL>.txt"]
OBEYED = re.compile(
    r"^\s*::(?!(warning|error|notice) ?[^:]*::)|##(vso|teamcity)?\[|\x1b|\r", re.IGNORECASE
)
"""What a CI system or a terminal would obey; our own annotations aside."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("outputs")
    files = {name: str(folder / name) for name in RUNNER_FILES}
    for path in files.values():
        Path(path).touch()
    jobs = [
        hostile("prints", bash(PRINTED), answer="\n".join(TEXTS)),
        hostile(
            "checks",
            write("shop/texts.txt", "\n".join(TEXTS)),
            checks=[{"name": "prints", "run": "cat shop/texts.txt; exit 1"}],
            form="openai-chat",
        ),
        hostile("names", *(write(f"shop/{name}", "EVIL\n") for name in NAMES)),
        hostile("tampers", bash(TAMPER)),
        hostile("denied", bash("##vso[EVIL]"), answer="::error::EVIL", permissions={}),
    ]
    environ = {
        **files,
        "GITHUB_ACTIONS": "true",
        "GITHUB_TOKEN": "ghs_0123456789abcdef0123456789",
        "ACTIONS_RUNTIME_TOKEN": "0123456789abcdef0123456789",
    }
    return carry_out(
        folder,
        jobs,
        *("--progress", "github", "--events", "events.copy"),
        *("--junit", "junit.copy", "--summary", "summary.copy"),
        environ=environ,
    )


def test_no_line_of_the_log_is_a_command_or_moves_a_cursor(ran: Ran) -> None:
    for line in [*ran.stdout.split("\n"), *ran.stderr.split("\n")]:
        assert not OBEYED.search(line), line
    assert MARK in ran.stdout + ran.stderr, "it is shown, and inert"


def test_the_command_files_of_the_ci_step_are_neither_seen_nor_written_by_tools(ran: Ran) -> None:
    said = told(ran.session("tampers"), 1)

    assert "\\n0\\n" in said, "not one of these variables is there"
    for name in RUNNER_FILES[:-1]:
        assert (ran.project.parent / name).read_text() == "", name
    assert "EVIL=1" not in (ran.project.parent / RUNNER_FILES[-1]).read_text()


def test_markdown_pages_have_no_live_link_image_mention_or_markup_of_an_agents(ran: Ran) -> None:
    for page in (ran.folder / "summary.md", ran.project / "summary.copy"):
        is_inert(page.read_text("utf-8"))
    for name in ("prints", "checks", "names"):
        is_inert(ran.session(name).transcript)


def test_junit_is_xml_without_attachments_whatever_a_check_prints(ran: Ran) -> None:
    for page in (ran.folder / "junit.xml", ran.project / "junit.copy"):
        text = page.read_text("utf-8")
        assert ET.fromstring(text).tag in {"testsuites", "testsuite"}
        assert text.count("[[") == text.count("[[ATTACHMENT|items/"), "only the runner's own files"
        assert "EVIL" in text


def test_json_and_events_are_json_line_by_line(ran: Ran) -> None:
    assert json.loads((ran.folder / "result.json").read_text("utf-8"))
    for line in (ran.project / "events.copy").read_text("utf-8").splitlines():
        assert json.loads(line)
    assert "\x1b" not in (ran.folder / "result.json").read_text("utf-8")


def test_odd_names_of_files_stay_data(ran: Ran) -> None:
    session = ran.session("names")

    assert session.status == "passed"
    assert session.patches[0]["files"] == len(NAMES)
    assert {path.name for path in ran.folder.glob("items/*")} == set(ran.cases) - {
        name for name in ran.cases if " / " in name
    }
