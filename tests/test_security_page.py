"""SECURITY.md names for each threat a test that is there; no family of threats is left out."""

import ast
from functools import cache
from pathlib import Path

from markdown_blocks import ROOT, names, section, tables

PAGE = ROOT / "SECURITY.md"


@cache
def functions_in(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        node.name
        for node in tree.body
        if isinstance(node, functions) and node.name.startswith("test_")
    )


def named() -> list[tuple[Path, str]]:
    (rows,) = tables(section(PAGE, "## How it is tested"))
    found = []
    for threat, cell in rows[1:]:
        (test,) = names(cell)
        file, _, name = test.partition("::")
        assert threat
        found.append((ROOT / file, name))
    return found


def test_every_threat_has_a_test_that_is_there() -> None:
    for file, name in named():
        assert file.is_file(), file
        assert name in functions_in(file), f"{file.relative_to(ROOT)} has no {name}"


def test_every_family_of_threats_is_in_the_table() -> None:
    there = set((ROOT / "tests" / "security").glob("test_*.py"))
    assert there <= {file for file, _ in named()}


def test_the_levels_are_the_mechanisms_of_the_sandbox() -> None:
    (rows,) = tables(section(PAGE, "## What is promised at each level"))
    assert [cell.strip("`").lower() for cell in rows[0][1:]] == [
        "bubblewrap",
        "landlock",
        "plain",
        "external: true",
    ]
