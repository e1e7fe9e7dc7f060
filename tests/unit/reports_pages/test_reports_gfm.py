"""The Markdown page as GitHub's own renderer makes HTML of it: hostile text stays in code."""

import re
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st

import report_samples
from harness_batch_reports import markdown
from hostile_texts import HOSTILE, MARK

FRAGMENTS = (
    "`", "``", "```", "`" * 90, "`" * 300 + "\n", "~~~", "|", "\\", "\\|",
    "<", ">", "<b>", "</td>", "<!--", "-->", "<details>",
    "</details>", "</summary>", "![", "](", ")", "[x]", "https://evil.example", "www.evil.example",
    "javascript:", "@octocat", "#1", "GH-1", "octo/repo#1", "a@evil.example", "\n", "\n\n", "\r\n",
    "    ", "\t", "# ", "- ", "* ", "> ", "1. ", "---", "===", ":--", "&lt;", "&#60;", "\x1b[31m",
    "\u202e", "\u2028", ":tada:", "$$", "{{", "```mermaid\n", "[^1]: ", "_", "**", MARK,
)  # fmt: skip
"""What a page would have to be broken with, to be put together in any order."""
OURS = {
    "h2", "h3", "p", "strong", "em", "code", "pre", "ul", "li", "hr", "br", "a", "table", "thead",
    "tbody", "tr", "th", "td", "details", "summary",
}  # fmt: skip
ALIVE = re.compile(r"@octocat|#1\b|GH-1|evil\.example|:tada:|<b>")
"""What GitHub would make links, mentions and pictures of, were it not in code."""


class Rendered(HTMLParser):
    """The elements of rendered HTML, and all text outside of code."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.said: list[str] = []
        options = Options.CMARK_OPT_UNSAFE  # what stands there as raw HTML is to be seen
        self.feed(cmarkgfm.github_flavored_markdown_to_html(page, options))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.open.append(tag)
        if tag in {"hr", "br", "img", "input"}:
            self.open.pop()

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag, tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_data(self, data: str) -> None:
        if not {"code", "pre"} & set(self.open):
            self.said.append(data)


def is_inert(page: str) -> None:
    rendered = Rendered(page)
    assert {tag for tag, _ in rendered.elements} <= OURS
    for tag, attributes in rendered.elements:
        if tag == "a":
            assert attributes == {"href": "https://ci.example/run/7"}
        else:
            assert attributes.keys() <= {"align", "open", "lang", "class"}, (tag, attributes)
    said = "\n".join(rendered.said)
    assert MARK not in said
    assert not ALIVE.search(said)
    assert rendered.open == []


@pytest.mark.parametrize("name", ["nightly", "passing", "review"])
def test_a_page_renders_to_its_own_elements_only(name: str) -> None:
    is_inert(markdown.summary(getattr(report_samples, name)()))


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:24]))
def test_hostile_text_comes_out_as_code(text: str) -> None:
    is_inert(markdown.summary(report_samples.hostile(text)))


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14))
def test_no_mixture_of_fragments_renders(parts: list[str]) -> None:
    text = MARK + "".join(parts)
    is_inert(markdown.summary(report_samples.hostile(text)))


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14))
def test_no_mixture_in_a_finding_renders(parts: list[str]) -> None:
    is_inert(markdown.summary(report_samples.reviewing(MARK + "".join(parts))))
