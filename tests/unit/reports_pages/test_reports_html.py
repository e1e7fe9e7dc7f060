"""The HTML page as a document: what is on it, and that nothing others wrote is markup in it."""

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

import report_pages
import report_views
from harness_batch_reports import html
from harness_batch_reports.html_session import Room, Told, as_script, document
from harness_batch_reports.read import read_run, read_transcripts
from hostile_texts import HOSTILE, MARK

CHART_JS = "87364cc2b2a76a6684929e7d6b80b18a897794db38400caff1fcf1791c6925d2"
"""SHA-256 of `dist/chart.umd.min.js` in the package `chart.js` 4.6.1 of the npm registry."""


class Document(HTMLParser):
    """What a parser makes of the page: its elements, and the insides of script and style."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.insides: list[tuple[str, dict[str, str], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag in {"script", "style"} and data.strip():
            self.insides.append((tag, attributes, data))


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> str:
    page = report_pages.write(tmp_path_factory.mktemp("night"), report_pages.night())
    return page.read_text("utf-8")


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = tuple(text for text in HOSTILE if len(text) < 1_000 and "\ud800" not in text)
    page = report_pages.write(tmp_path_factory.mktemp("evil"), report_pages.hostile(texts))
    return page.read_text("utf-8")


def test_the_charting_library_is_the_registrys_own_file() -> None:
    data = files("harness_batch_reports").joinpath("page", *html.LIBRARY.split("/")).read_bytes()
    assert hashlib.sha256(data).hexdigest() == CHART_JS
    assert b"Chart.js v4.6.1" in data[:100]
    assert "MIT" in files("harness_batch_reports").joinpath(
        "page", "vendor", "chart.LICENSE.md"
    ).read_text("utf-8")


def test_the_policy_names_each_script_and_style_by_its_hash_and_no_host(night: str) -> None:
    document = Document(night)
    (policy,) = (
        attributes["content"]
        for tag, attributes in document.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "://" not in policy
    assert "unsafe" not in policy
    runs = [
        (tag, inside)
        for tag, attributes, inside in document.insides
        if attributes.get("type") != "application/json"
    ]
    assert [tag for tag, _ in runs] == ["style", "script", "script"]
    for tag, inside in runs:
        digest = b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        (named,) = re.findall(rf"{tag}-src ([^;]+)", policy)
        assert f"'sha256-{digest}'" in named


@pytest.mark.parametrize("page", ["night", "evil"])
def test_the_page_refers_to_nothing_outside_of_itself(
    page: str, request: pytest.FixtureRequest
) -> None:
    for tag, attributes in Document(request.getfixturevalue(page)).elements:
        assert not attributes.keys() & {"src", "srcset", "action", "style", "data", "poster"}, tag
        assert not any(name.startswith("on") for name in attributes), tag
        if "href" in attributes:
            assert attributes["href"].startswith(("#", "data:,")), attributes


def test_nothing_hostile_is_an_element_of_the_page(night: str, evil: str) -> None:
    def tags(text: str) -> set[str]:
        return {tag for tag, _ in Document(text).elements}

    assert tags(evil) <= tags(night)
    for tag, attributes, inside in Document(evil).insides:
        assert MARK not in inside or attributes.get("type") == "application/json", tag


def test_data_is_json_that_no_parser_can_leave(evil: str) -> None:
    data = [
        inside
        for _, attributes, inside in Document(evil).insides
        if attributes.get("type") == "application/json"
    ]
    assert len(data) == 2
    for text in data:
        json.loads(text)
        assert not re.search("[<>&\u2028\u2029]", text)


@pytest.mark.parametrize("text", ["</script><script>", "<!--", "\u2028\u2029", "\ud800", "&lt;"])
def test_json_for_a_script_means_the_same(text: str) -> None:
    assert json.loads(as_script({"t": text})) == {"t": text}
    as_script({"t": text}).encode()


def test_the_verdict_comes_first_and_each_chart_has_its_table(night: str) -> None:
    assert night.index("2 of 8 sessions failed") < night.index('id="sessions"')
    charts = re.findall(r'data-chart="(\w+)"', night)
    assert charts == ["outcome", "spend", "models", "cache"]
    for chart in charts:
        assert f'<table id="table-{chart}"' in night


def test_what_has_no_price_is_said(night: str) -> None:
    assert "2 model calls of 46 without a known price; the true cost is above $1.38." in night
    assert "unpriced" in night


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    first = report_pages.write(tmp_path / "run", report_pages.night()).read_bytes()
    database = tmp_path / "run" / "run.duckdb"
    assert report_pages.page_of(database) == first


def test_child_sessions_are_on_the_page_and_their_parent_links_to_them(tmp_path: Path) -> None:
    page = report_pages.write(tmp_path / "run", report_pages.family()).read_text("utf-8")
    data = {
        attributes["data-id"]: json.loads(inside)
        for _, attributes, inside in Document(page).insides
        if "data-id" in attributes
    }
    assert list(data) == ["ses_core", "ses_child"]
    assert {"k": "child", "title": "explore", "id": "ses_child", "t": "look it up"} in (
        data["ses_core"]["blocks"]
    )
    assert data["ses_child"]["parent"] == "ses_core"
    assert data["ses_child"]["blocks"][-1]["t"] == "Line 5 it is."
    assert "openai/gpt-5" in page, "what the child used is counted"


def test_what_does_not_fit_on_a_page_is_said_and_the_worst_has_its_room(tmp_path: Path) -> None:
    database = tmp_path / "run.duckdb"
    report_views.write(database, report_pages.many(3, 40))
    told = list(read_transcripts(database, read_run(database).sessions))
    room = Room(left=6_000)
    first, second, _ = (document(Told(transcript=one), room) for one in told)
    assert first["blocks"][-1]["k"] == "cut"
    assert re.fullmatch(r"\d messages more: this page is full, .*", first["blocks"][-1]["t"])
    assert second["blocks"][0]["k"] == "attempt"
