"""The documents as tests read them: fenced blocks, table cells, commands."""

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
"""The front page and the guide."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@frozen
class Block:
    """A fenced block: its language, its text, and the line of the page that it begins in."""

    language: str
    text: str
    page: Path
    line: int

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """The page's fenced blocks in these languages, in order."""
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        if found[1] in languages:
            yield Block(found[1], found[2], page, text.count("\n", 0, found.start()) + 1)


def commands(page: Path) -> Iterator[str]:
    """What a reader of the page's console blocks types, line by line."""
    for block in blocks(page, "console"):
        for line in block.text.splitlines():
            if line.startswith("$ "):
                yield line.removeprefix("$ ")


def tables(text: str) -> Iterator[list[list[str]]]:
    """Every table: rows of cells, the head first, without the line below it."""
    rows: list[list[str]] = []
    for line in (*text.splitlines(), ""):
        if line.startswith("|"):
            rows.append(_cells(line))
        elif rows:
            yield [rows[0], *rows[2:]]
            rows = []


def section(page: Path, head: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    level = len(head) - len(head.lstrip("#"))
    text = page.read_text("utf-8")
    start = text.index(f"\n{head}\n") + len(head) + 2
    end = re.search(rf"^#{{1,{level}}} ", text[start:], re.MULTILINE)
    return text[start : start + end.start()] if end else text[start:]


def names(cell: str) -> list[str]:
    """What stands between backticks in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]
