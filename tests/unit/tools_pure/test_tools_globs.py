"""Path globs: what they mean, and that none of them is slow."""

import pytest

from harness_batch.tools.globs import BadGlob, Glob

MEANT = [
    ("*.py", "a.py"),
    ("*.py", "src/deep/a.py"),
    ("src/*.py", "src/a.py"),
    ("src/**/*.py", "src/a.py"),
    ("src/**/*.py", "src/x/y/a.py"),
    ("src/**", "src/x/y"),
    ("**/*", "a"),
    ("**/*", "a/b/c"),
    ("**/test_*.py", "test_a.py"),
    ("*.{ts,tsx}", "web/a.tsx"),
    ("{src,lib}/**/*.{c,h}", "lib/x/a.h"),
    ("a?c", "abc"),
    ("[ab].py", "b.py"),
    ("[!ab].py", "c.py"),
    ("./src/*.py", "src/a.py"),
    ("/src/*.py", "src/a.py"),
    ("**/**/a", "x/y/a"),
    ("a{b", "a{b"),
    ("{a,{b,c}d}", "cd"),
    (".github/**", ".github/workflows/ci.yml"),
    ("*", ".hidden"),
]
NOT_MEANT = [
    ("*.py", "a.pyc"),
    ("src/*.py", "src/x/a.py"),
    ("src/*.py", "a/src/b.py"),
    ("src/**/*.py", "lib/a.py"),
    ("src/**", "src"),
    ("a?c", "a/c"),
    ("[!ab].py", "a.py"),
    ("a", "A"),
]


@pytest.mark.parametrize(("pattern", "path"), MEANT)
def test_a_glob_means(pattern: str, path: str) -> None:
    assert Glob.parse(pattern).matches(path)


@pytest.mark.parametrize(("pattern", "path"), NOT_MEANT)
def test_a_glob_does_not_mean(pattern: str, path: str) -> None:
    assert not Glob.parse(pattern).matches(path)


@pytest.mark.parametrize(
    "pattern", ["", "/", "../x", "a/../b", "{a,b}" * 7, "x" * 2000, "{" + "a," * 70 + "b}"]
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(BadGlob):
        Glob.parse(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 200 + "b", "a" * 250),
        ("**/" * 200 + "b", "a/" * 2000 + "a"),
        ("**/a/" * 100 + "b", "a/" * 1000 + "a"),
        ("{" * 500, "{" * 250),
        ("[" * 500, "a"),
    ],
)
def test_a_hostile_pattern_is_answered_at_once(pattern: str, path: str) -> None:
    assert not Glob.parse(pattern).matches(path)
