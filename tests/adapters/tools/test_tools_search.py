"""glob and grep over a real tree: by ripgrep where the host has it, else by our own program.

A folder without `.git` is always searched by our own program; both must answer alike.
"""

import os
from pathlib import Path

import pytest
import trio

from fakes_tools import Desk, denying, desk, inside_only
from harness_batch.rules import Ask
from harness_batch.tools.glob import GlobTool
from harness_batch.tools.grep import GrepTool

GLOB, GREP = GlobTool(), GrepTool()
FILES = {
    ".gitignore": "*.log\n/build/\n!keep.log\n",
    ".env": "TOKEN=needle\n",
    ".github/ci.yml": "run: needle\n",
    "a.py": "import b\nneedle = 1\n",
    "src/b.py": "x = 'needle'\r\ny = 2\r\n",
    "src/deep/c.ts": "let needle = 1\n",
    "src/deep/.gitignore": "made.py\n",
    "src/deep/made.py": "needle\n",
    "src/x.log": "needle\n",
    "keep.log": "needle\n",
    "build/out.py": "needle\n",
    "sub/build/in.py": "needle\n",
    "odd name \u00fc.py": "needle\n",
    "binary.py": "needle\0needle\n",
}


def plant(root: Path) -> None:
    """Files in which each is newer than the one before."""
    for age, (name, text) in enumerate(FILES.items()):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, newline="")
        os.utime(file, (1_000_000 + age, 1_000_000 + age))


@pytest.fixture(params=["in git", "plain"])
def at(tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    here = desk(tmp_path, inside_only)
    root = here.context.root
    if request.param == "in git":
        (root / ".git" / "info").mkdir(parents=True)
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (root / ".git" / "needle.py").write_text("needle\n")
    plant(root)
    return here


async def test_glob_gives_newest_first_without_ignored_files(at: Desk) -> None:
    result = await at.call(GLOB, pattern="**/*.py")

    assert result.output.split("\n") == [
        "binary.py",
        "odd name \u00fc.py",
        "sub/build/in.py",
        "src/b.py",
        "a.py",
    ]


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.{ts,log}", None, ["keep.log", "src/deep/c.ts"]),
        ("src/*", None, ["src/b.py"]),
        ("*.py", "src", ["src/b.py"]),
        ("deep/*", "src", ["src/deep/.gitignore", "src/deep/c.ts"]),
        ("*.py", "build", ["build/out.py"]),
        (".github/**", None, [".github/ci.yml"]),
        ("*.rs", None, ["No files found."]),
    ],
)
async def test_glob_patterns_are_seen_from_the_path(
    at: Desk, pattern: str, path: str | None, found: list[str]
) -> None:
    result = await at.call(GLOB, pattern=pattern, **({"path": path} if path else {}))

    assert result.output.split("\n") == found


async def test_an_absolute_glob_in_the_workspace_is_understood(at: Desk) -> None:
    result = await at.call(GLOB, pattern=f"{at.context.root}/src/*.py")

    assert result.output == "src/b.py"


@pytest.mark.parametrize("pattern", ["../*", "{a,b}" * 10, "/"])
async def test_a_glob_that_cannot_be_used_is_an_error(at: Desk, pattern: str) -> None:
    assert (await at.call(GLOB, pattern=pattern)).status == "error"


async def test_a_hundred_files_are_shown_and_the_count_is_told(at: Desk) -> None:
    for number in range(150):
        (at.context.root / f"many{number}.rs").touch()

    result = await at.call(GLOB, pattern="*.rs")

    assert result.output.count(".rs") == 100
    assert "100 of 150 files" in result.output


async def test_grep_gives_lines_by_file_newest_first(at: Desk) -> None:
    result = await at.call(GREP, pattern="needle", include="*.{py,ts}")

    assert result.output.split("\n") == [
        "5 matching lines in 5 files",
        "odd name \u00fc.py:",
        "  1: needle",
        "sub/build/in.py:",
        "  1: needle",
        "src/deep/c.ts:",
        "  1: let needle = 1",
        "src/b.py:",
        "  1: x = 'needle'",
        "a.py:",
        "  2: needle = 1",
    ]


@pytest.mark.parametrize("path", ["src/b.py", "./src/b.py"])
async def test_grep_searches_a_single_file(at: Desk, path: str) -> None:
    result = await at.call(GREP, pattern="y = \\d$", path=path)

    assert result.output == "1 matching line in 1 file\nsrc/b.py:\n  2: y = 2"


async def test_grep_leaves_out_files_that_may_not_be_read(tmp_path: Path) -> None:
    here = desk(tmp_path, denying("read", ".env"))
    plant(here.context.root)

    result = await here.call(GREP, pattern="TOKEN=n.*")
    single = await here.call(GREP, pattern="TOKEN=n.*", path=".env")

    assert result.output == "No matches found."
    assert single.output == "No matches found."


async def test_no_match_is_said(at: Desk) -> None:
    result = await at.call(GREP, pattern="absent")

    assert result.output == "No matches found."
    assert result.status == "completed"


@pytest.mark.parametrize("pattern", ["(unclosed", "[a", "*a", "a\0b", "a\nb"])
async def test_a_bad_expression_is_an_error_that_says_why(at: Desk, pattern: str) -> None:
    result = await at.call(GREP, pattern=pattern)

    assert result.status == "error"
    assert "pattern" in result.output or "regular expression" in result.output


async def test_an_expression_that_begins_with_a_dash_is_no_option(at: Desk) -> None:
    (at.context.root / "d.txt").write_text("--pre=x\n")

    assert "d.txt" in (await at.call(GREP, pattern="--pre")).output


async def test_an_expression_that_is_not_ascii_is_matched_letter_by_letter(at: Desk) -> None:
    (at.context.root / "u.txt").write_text("gr\u00fc\u00dfe\n")

    assert "u.txt" in (await at.call(GREP, pattern="^gr[\u00f6\u00fc].e$")).output


async def test_links_are_not_followed(at: Desk) -> None:
    outside = at.context.root.parent / "outside"
    outside.mkdir()
    (outside / "o.py").write_text("needle outside\n")
    (at.context.root / "link").symlink_to(outside)
    (at.context.root / "link.py").symlink_to(outside / "o.py")

    assert "outside" not in (await at.call(GREP, pattern="needle.*")).output
    assert "link" not in (await at.call(GLOB, pattern="**/*")).output


def test_a_path_outside_is_asked_for(at: Desk) -> None:
    outside = str(at.context.root.parent)

    assert at.asks(GREP, pattern="x", path="..") == (
        Ask("grep", outside),
        Ask("external_directory", outside),
    )
    assert at.asks(GLOB, pattern="x", path=".git")


async def test_a_folder_outside_is_searched_where_the_rules_allow(tmp_path: Path) -> None:
    here = desk(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "o.py").write_text("needle\n")

    found = await here.call(GREP, pattern="needle", path=str(outside))
    listed = await here.call(GLOB, pattern="*.py", path=str(outside))

    assert f"{outside}/o.py:" in found.output
    assert listed.output == f"{outside}/o.py"


async def test_a_name_with_a_line_feed_cannot_forge_an_answer(at: Desk) -> None:
    (at.context.root / "a\nb.py").write_text("needle\n")

    assert "b.py" not in (await at.call(GREP, pattern="needle", include="[ab]*b.py")).output


async def test_a_fifo_does_not_hold_a_search(at: Desk) -> None:
    os.mkfifo(at.context.root / "fifo.py")

    with trio.fail_after(10):
        await at.call(GREP, pattern="needle")


async def test_a_long_line_is_clipped(at: Desk) -> None:
    (at.context.root / "min.js").write_text("needle" + "x" * 3_000_000 + "\n")

    result = await at.call(GREP, pattern="needle", include="*.js")

    assert len(result.output) < 500


async def test_many_matches_stop_the_search(at: Desk) -> None:
    (at.context.root / "many.txt").write_text("needle\n" * 50_000)

    result = await at.call(GREP, pattern="needle", include="*.txt")

    assert "10000 matching lines" in result.output
    assert "there may be more" in result.output
    assert result.output.count("needle") == 100


async def test_a_hostile_expression_is_stopped_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = desk(tmp_path)
    (here.context.root / "a.txt").write_text("a" * 60 + "\n")
    monkeypatch.setattr("harness_batch.tools.search.SECONDS", 0.5)

    with trio.fail_after(10):
        result = await here.call(GREP, pattern="(a+)+$b")

    assert "there may be more" in result.output
