"""Wildcards: `*`, `?`, anchored, in linear time."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.permissions.matcher import covers, matches, path_matches

ALPHABET = "ab */?\n"


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*", "", True),
        ("*", "a/b\nc", True),
        ("", "", True),
        ("", "a", False),
        ("git status", "git status", True),
        ("git status", "git status -s", False),
        ("git *", "git", True),
        ("git *", "git status", True),
        ("git *", "gitk", False),
        ("git*", "gitk", True),
        ("* --help", "ls --help", True),
        ("a*b*c", "aXbYc", True),
        ("a*b*c", "acb", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("*a?c*", "xxabcxx", True),
        ("*?", "", False),
        ("a*a", "a", False),
        (".*", "xy", False),
        ("[ab]", "a", False),
        ("a\\b", "a/b", False),
        ("GIT *", "git x", False),
    ],
)
def test_a_pattern_matches_the_whole_text_or_not(pattern: str, text: str, fits: bool) -> None:
    assert matches(pattern, text) is fits


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("**/.env", ".env", True),
        ("src\\*.py", "src/a.py", True),
        ("src/*", "src\\a", True),
        ("*.py", "x/a.py", True),
        ("./src/*", "src/a", False),
    ],
)
def test_paths_fold_backslashes_and_match_at_the_root(pattern: str, path: str, fits: bool) -> None:
    assert path_matches(pattern, path) is fits


@settings(deadline=None)
@given(st.text(ALPHABET, max_size=8), st.text("ab /\n", max_size=10))
def test_it_agrees_with_a_regular_expression(pattern: str, text: str) -> None:
    def expression(glob: str) -> str:
        return "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in glob)

    fits = re.fullmatch(expression(pattern), text, re.DOTALL) is not None
    if pattern.endswith(" *"):
        fits = fits or re.fullmatch(expression(pattern[:-2]), text, re.DOTALL) is not None
    assert matches(pattern, text) is fits


@settings(deadline=None)
@given(st.text(ALPHABET, max_size=6), st.text(ALPHABET, max_size=6), st.text("ab /\n", max_size=8))
def test_a_covering_pattern_matches_all_that_the_other_does(
    wide: str, narrow: str, text: str
) -> None:
    for permission, fits in (("bash", matches), ("read", path_matches)):
        if covers(wide, narrow, permission) and fits(narrow, text):
            assert fits(wide, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("*a" * 50_000, "a" * 100_000 + "b"),
        ("*" * 100_000, "a" * 100_000),
        ("?" * 100_000, "a" * 100_000),
        ("*a?b*" * 20_000, "ab" * 50_000),
        ("*?a" * 30_000, "a" * 100_000),
        ("*" + "a" * 50_000 + "b*", "a" * 100_000),
        ("*" + "a?" * 1_000 + "b*", "a" * 100_000),
    ],
    ids=lambda text: text[:6],
)
def test_hostile_patterns_and_texts_cost_little(pattern: str, text: str) -> None:
    started = time.thread_time()
    matches(pattern, text)
    assert time.thread_time() - started < 2
