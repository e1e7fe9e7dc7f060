"""What a newcomer reads: help, mistakes on the command line, and what to do next."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness_batch.cli.main import COMMANDS


def harness_batch(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample repository and one run in `out/`."""
    home = tmp_path_factory.mktemp("newcomer")
    assert harness_batch(home, "init", "--sample", "sample").returncode == 0
    done = harness_batch(home, "run", "fix-failing-test", "--repo", "sample", "--out", "out")
    assert done.returncode == 0
    (home / "screen.txt").write_text(done.stdout)
    (home / "log.txt").write_text(done.stderr)
    return home


def test_help_lists_every_command_and_the_first_steps(tmp_path: Path) -> None:
    said = harness_batch(tmp_path, "--help").stdout
    for name, words in COMMANDS.items():
        assert f"  {name}" in said
        assert words in " ".join(said.split())
    assert "  harness-batch init --sample sample\n" in said


def test_a_misspelt_command_is_told_from_a_recipe(tmp_path: Path) -> None:
    done = harness_batch(tmp_path, "schemma")
    assert done.returncode == 2
    assert "no command or recipe `schemma`; did you mean `schema`?" in done.stderr


def test_a_recipe_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    done = harness_batch(tmp_path, "run", "recipes/mine.yaml")
    assert done.returncode == 2
    assert "fix-failing-test, nightly-refactor, review-pr" in done.stderr


@pytest.mark.parametrize("words", [("--repo", "nowhere"), ("--repo", ".", "--ref", "nothing")])
def test_a_repository_that_is_not_there_is_the_users_mistake(
    ran: Path, words: tuple[str, ...]
) -> None:
    done = harness_batch(ran, "run", "fix-failing-test", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("harness-batch: ")
    assert done.stdout == ""


def test_a_bound_on_money_needs_a_price(ran: Path) -> None:
    words = ("run", "fix-failing-test", "--repo", "sample", "-m", "openai/gpt-5", "--max-cost", "1")
    done = harness_batch(ran, *words)
    assert done.returncode == 2
    assert "--max-cost needs the prices of openai/gpt-5" in done.stderr


def test_the_warning_about_containment_is_one_short_line(ran: Path) -> None:
    warnings = [line for line in (ran / "log.txt").read_text().splitlines() if "sandbox" in line]
    assert len(warnings) == 1
    assert len(warnings[0]) <= 80
    assert "harness-batch doctor" in warnings[0]


def test_the_screen_says_how_to_apply_the_patch_and_that_works(ran: Path) -> None:
    screen = (ran / "screen.txt").read_text()
    (line,) = (text for text in screen.splitlines() if "harness-batch apply" in text)
    words = line.partition("harness-batch ")[2].split()
    assert words[2:] == ["--run", "out", "--repo", "sample"]
    done = harness_batch(ran, *words)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "invoice/money.py")
    again = harness_batch(ran, *words)
    assert again.returncode == 0
    assert "has this change already" in again.stdout


def test_the_answer_is_shown_whole_not_cut(ran: Path) -> None:
    screen = " ".join((ran / "screen.txt").read_text().split())
    assert "All tests pass; no test was changed." in screen


def test_a_missing_key_is_named_on_the_screen(ran: Path) -> None:
    words = ("run", "fix-failing-test", "--repo", "sample", "-m", "mine/m", "--config", "c.jsonc")
    (ran / "c.jsonc").write_text(
        '{"provider": {"mine": {"type": "openai-chat", "base_url": "http://127.0.0.1:9/v1"}},'
        ' "limits": {"seconds": 1}}'
    )
    done = harness_batch(ran, *words)
    assert done.returncode == 3
    assert "cannot connect to 127.0.0.1:9: Connection refused" in " ".join(done.stdout.split())
