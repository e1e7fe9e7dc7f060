"""Whether a Markdown page is inert: nothing that others wrote is read as anything but code."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hostile_texts import MARK

OURS = re.compile(
    r"(<details( open)?><summary>[^<>]*(<code>[^<>]*</code>[^<>]*)*</summary>|</details>)\n?"
)
"""The only HTML that a page has; between the tags no `<` is left."""


def tokens(page: str) -> Iterator[Token]:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for block in reader.parse(page):
        yield block
        yield from block.children or ()


def is_inert(page: str) -> None:
    """Nothing that others wrote is read as anything but code."""
    for token in tokens(page):
        assert token.type not in {"image", "html_inline"}, token
        if token.type == "html_block":
            assert OURS.fullmatch(token.content), token.content
        elif token.type == "link_open":
            assert token.attrGet("href") == "https://ci.example/run/7"
        elif token.type == "text":
            assert MARK not in token.content, token.content
    for line in page.split("\n"):
        assert not re.match(r"\s*::", line), line
        assert not re.search(r"##(vso)?\[|\x1b|\u202e|\x00", line, re.IGNORECASE), line
