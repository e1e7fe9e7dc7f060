"""The HTML report in a real browser: what people do with it, and what hostile text cannot do."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import report_pages
from chromium import MISSING, PROGRAM, Tab, chromium, tab
from hostile_texts import HOSTILE

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=MISSING)

ATTACKS = (
    "<script>window.ran = 'script'; alert('EVIL')</script>",
    "</script><script>window.ran = 'closed'</script>",
    "<!--<script>window.ran = 'comment'</script>-->",
    "<img src=x onerror=\"window.ran = 'image'\">",
    "<svg onload=\"window.ran = 'svg'\"><style>* { display: none }</style>",
    "<a href=\"javascript:window.ran = 'link'\">EVIL</a> [EVIL](javascript:alert(1))",
    "<iframe srcdoc=\"<script>parent.ran = 'frame'</script>\"></iframe>",
    "<link rel=stylesheet href=https://evil.example/x.css><base href=https://evil.example/>",
    '<meta http-equiv=refresh content="0;url=https://evil.example/">',
    "<form action=https://evil.example/><input name=a autofocus onfocus=window.ran=1>",
    "'\" onmouseover=window.ran=1 x='\" style=position:fixed",
    "{{ 7 * 7 }} {% raw %} ${window.ran=1} \u2028 window.ran=1 \u2029",
    "\u202egnihton \u2066 EVIL \u2069 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 abc",
    *(text for text in HOSTILE if len(text) < 1_000 and "\ud800" not in text),
)
OVERFLOWS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
SHIFTS = """() => new Promise((told) => {
    let shifted = 0;
    const watch = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifted += entry.value;
    });
    watch.observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => told(shifted), 50)));
})"""
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_pages.write(tmp_path_factory.mktemp("night"), report_pages.night())


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_pages.write(tmp_path_factory.mktemp("evil"), report_pages.hostile(ATTACKS))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_pages.write(tmp_path_factory.mktemp("large"), report_pages.many(60, 10_000))


@pytest.fixture
def desk(browser: Browser) -> Iterator[Tab]:
    with tab(browser, viewport=DESK) as opened:
        yield opened
        assert opened.trouble == []


def test_it_loads_without_a_word_or_a_request_and_nothing_moves(desk: Tab, night: Path) -> None:
    page = desk.opened(night)
    expect(page.locator("#verdict")).to_have_text(
        "2 of 8 sessions failed, 1 errored, 1 cancelled, 1 skipped"
    )
    drawn = "[...document.querySelectorAll('canvas')].filter((c) => Chart.getChart(c)).length"
    assert page.evaluate(drawn) == 4
    assert page.evaluate(SHIFTS) == 0


def test_sessions_are_filtered_by_words_by_outcome_and_by_what_was_said(
    desk: Tab, night: Path
) -> None:
    page = desk.opened(night)
    rows = "#session-table tbody tr"
    assert desk.count(rows) == 8
    page.get_by_label("Filter sessions").fill("x-api-key")
    assert desk.count(rows) == 1
    expect(page.locator("#shown")).to_have_text("1 of 8")
    page.get_by_label("Filter sessions").fill("linter says")
    expect(page.locator("#none")).to_be_visible()
    page.get_by_label("in transcripts too").check()
    assert desk.count(rows) == 2
    page.get_by_label("Filter sessions").fill("")
    page.get_by_role("button", name="failed 2").click()
    assert desk.count(rows) == 2
    page.get_by_role("button", name="errored 1").click()
    assert desk.count(rows) == 3


@pytest.mark.parametrize(
    ("head", "first", "second"),
    [("Cost", "docs", "cli"), ("Steps", "cli", "docs"), ("Item", "api", "cli")],
)
def test_a_click_on_a_head_sorts_and_says_how(
    desk: Tab, night: Path, head: str, first: str, second: str
) -> None:
    page = desk.opened(night)
    page.get_by_role("button", name=head, exact=True).click()
    items = page.locator("#session-table tbody th a").all_text_contents()
    assert items[:2] == [f"fix-lint/package={first}", f"fix-lint/package={second}"]
    order = "ascending" if head == "Item" else "descending"
    sorted_head = page.locator(f"th[aria-sort={order}]")
    expect(sorted_head).to_have_text(head)
    page.get_by_role("button", name=head, exact=True).click()
    expect(page.locator("th[aria-sort]:not([aria-sort=none])")).not_to_have_attribute(
        "aria-sort", order
    )
    assert page.locator("#session-table tbody th a").all_text_contents() == items[::-1] or (
        head != "Item"
    )


def test_a_session_opens_with_its_checks_diff_time_line_and_transcript(
    desk: Tab, night: Path
) -> None:
    page = desk.opened(night)
    page.get_by_role("link", name="fix-lint/package=cli").first.click()
    expect(page.locator("#session h1")).to_have_text("fix-lint/package=cli")
    expect(page.locator("#session h1")).to_be_focused()
    assert desk.count("#report") == 0
    expect(page.locator(".checks")).to_contain_text("FAILED tests/test_cli.py::test_help")
    assert page.locator(".diff .plus").first.text_content() == (
        '+    return f"Usage: {name} " + " | ".join(words)'
    )
    assert page.evaluate("Chart.getChart(document.querySelector('#session canvas')).data.labels")
    page.go_back()
    expect(page.locator("#verdict")).to_be_visible()
    expect(page.get_by_role("link", name="fix-lint/package=cli").first).to_be_focused()


def test_tool_calls_are_folded_and_unfold_one_by_one_or_all(desk: Tab, night: Path) -> None:
    page = desk.opened(night, "#s=ses_cli")
    assert desk.count(".call pre") == 0
    page.locator(".call > summary").first.click()
    expect(page.locator(".call").first).to_contain_text("exit code 1")
    page.get_by_role("button", name="Unfold all").click()
    assert page.locator("details.block:not([open])").count() == 0
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert page.locator("details.block[open]").count() == 0


def test_the_search_unfolds_and_marks_what_it_found(desk: Tab, night: Path) -> None:
    page = desk.opened(night, "#s=ses_cli")
    page.get_by_label("Search the transcript").fill("NO RULE allows")
    expect(page.locator("mark")).to_have_text("no rule allows")
    expect(page.locator("mark")).to_be_in_viewport()
    expect(page.locator(".count-found")).to_have_text("1 of 1")
    page.get_by_label("Search the transcript").fill("tokens in")
    expect(page.locator(".count-found")).to_have_text("1 of 2")
    page.keyboard.press("Enter")
    expect(page.locator(".count-found")).to_have_text("2 of 2")
    page.get_by_label("Search the transcript").fill("not there at all")
    expect(page.locator(".count-found")).to_have_text("nothing found")
    assert page.locator("mark").count() == 0


def test_hostile_text_is_text_everywhere(desk: Tab, evil: Path) -> None:
    page = desk.opened(evil)
    page.locator("#session-table tbody th a").click()
    page.get_by_role("button", name="Unfold all").click()
    page.locator("details.fold:not([open]) > summary").evaluate_all(
        "(all) => all.forEach((one) => one.click())"
    )
    expect(page.locator(".transcript")).to_contain_text("window.ran = 'closed'")
    assert page.evaluate("window.ran") is None
    foreign = "img, svg, iframe, object, embed, form:not(dialog form), base, link[rel=stylesheet]"
    assert page.locator(foreign).count() == 0
    assert page.locator("script").count() == 4
    links = page.locator("a").evaluate_all("(all) => all.map((one) => one.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    shown = page.evaluate("document.body.textContent + document.title")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", shown)
    assert page.url.startswith("file:")


def test_the_policy_stops_what_would_get_on_the_page_all_the_same(
    browser: Browser, night: Path
) -> None:
    with tab(browser) as opened:
        page = opened.opened(night)
        page.evaluate("""() => {
            const script = document.createElement("script");
            try { script.textContent = "window.ran = 1"; } catch {}
            document.body.append(script);
            try { document.body.innerHTML = "<img src=x onerror='window.ran = 2'>"; } catch {}
            const image = document.createElement("img");
            image.src = "https://evil.example/pixel.png";
            document.body.append(image);
        }""")
        page.wait_for_timeout(100)
        assert page.evaluate("window.ran") is None
        assert page.locator("#verdict").count() == 1
        assert any("Content Security Policy" in told for told in opened.trouble)
        asked = [told for told in opened.trouble if told.startswith("asks")]
        assert opened.blocked == ["csp"] * len(asked)


def test_ten_thousand_parts_open_in_under_two_seconds(desk: Tab, large: Path) -> None:
    page = desk.opened(large)
    loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    opening = page.evaluate("""() => new Promise((told) => {
        const start = performance.now();
        addEventListener("hashchange", () => requestAnimationFrame(() => setTimeout(
            () => told(performance.now() - start), 0)));
        location.hash = "s=ses_p0000";
    })""")
    expect(page.locator(".transcript")).to_contain_text("Step 0.")
    assert loaded < 2_000
    assert opening < 2_000
    page.get_by_label("Search the transcript").fill("needle-9999 passed")
    expect(page.locator("mark")).to_be_in_viewport()
    assert page.locator(".block").count() > 10_000


def test_everything_can_be_done_with_the_keyboard(desk: Tab, night: Path) -> None:
    page = desk.opened(night)
    press = page.keyboard.press
    press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    press("Enter")
    expect(page.locator("main")).to_be_focused()
    press("/")
    expect(page.get_by_label("Filter sessions")).to_be_focused()
    page.keyboard.type("core")
    press("Escape")
    press("j")
    expect(page.locator("#session h1")).to_have_text("fix-lint/package=core")
    press("e")
    assert page.locator("details.block:not([open])").count() == 0
    press("c")
    assert page.locator("details.block[open]").count() == 0
    press("Escape")
    expect(page.locator("#verdict")).to_be_visible()
    press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("single keys work").uncheck()
    press("Escape")
    expect(page.get_by_role("dialog")).not_to_be_visible()
    press("j")
    expect(page.locator("#verdict")).to_be_visible()


def test_the_focus_goes_from_top_to_bottom(desk: Tab, night: Path) -> None:
    page = desk.opened(night)
    tops = []
    for _ in range(40):
        page.keyboard.press("Tab")
        tops.append(
            page.evaluate("""() => {
            const box = document.activeElement.getBoundingClientRect();
            const stays = document.activeElement.closest(".bar, .skip");
            return stays ? -1 : Math.round(box.top + scrollY + box.height);
        }""")
        )
    below = [top for top in tops if top >= 0]
    assert len(below) > 20
    assert all(later > earlier - 60 for earlier, later in pairwise(below))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_it_fits_a_desk_and_a_phone_by_day_and_by_night(
    browser: Browser, night: Path, evil: Path, size: Any, scheme: Any
) -> None:
    with tab(browser, viewport=size, color_scheme=scheme) as opened:
        for file, fragment in (
            (night, ""),
            (night, "#s=ses_cli"),
            (evil, ""),
            (evil, "#s=ses_evil"),
        ):
            page = opened.opened(file, fragment)
            assert not page.evaluate(OVERFLOWS), f"{file} {fragment}"
        shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", shade)[:3])) > 382) == (scheme == "light")
        assert opened.trouble == []


def test_the_button_turns_the_colours_of_page_and_charts(desk: Tab, night: Path) -> None:
    page = desk.opened(night)
    line = "Chart.getChart(document.querySelector('[data-chart=spend] canvas')).data.datasets[0]"
    before = page.evaluate(f"{line}.borderColor")
    page.get_by_role("button", name="Dark").click()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate(f"{line}.borderColor") != before


def test_it_prints_without_controls_and_with_everything_that_is_said(
    desk: Tab, night: Path
) -> None:
    page = desk.opened(night, "#s=ses_cli")
    page.get_by_role("button", name="Unfold all").click()
    page.emulate_media(media="print")
    assert desk.count(".bar, .toolbar, .crumbs") == 0
    assert desk.count(".call pre") > 3
    assert page.locator("pre.code").first.evaluate("(one) => getComputedStyle(one).maxHeight") == (
        "none"
    )
    assert page.pdf().startswith(b"%PDF-")


def test_without_scripts_the_report_can_still_be_read(browser: Browser, night: Path) -> None:
    with tab(browser, java_script_enabled=False) as opened:
        page = opened.opened(night)
        expect(page.locator("noscript p")).to_contain_text("transcript.md")
        assert page.locator("#session-table tbody tr").count() == 8
        assert page.locator("#filter").is_hidden()
