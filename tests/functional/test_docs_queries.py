"""The questions of the guide's analytics page have answers on a real run's database."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from markdown_blocks import DOCS, Block, blocks

QUESTIONS = list(blocks(DOCS / "analytics.md", "sql"))


def harness_batch(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness_batch", *words],
        cwd=cwd, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one run of the sample."""
    home = tmp_path_factory.mktemp("analytics")
    harness_batch(home, "init", "--sample", "sample")
    harness_batch(home, "run", "fix-failing-test", "--repo", "sample", "--progress", "none")
    return home / ".harness/history.duckdb"


def test_there_are_ten_questions() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_a_question_of_the_guide_is_answered(history: Path, question: Block) -> None:
    with duckdb.connect(str(history), read_only=True) as database:
        assert database.execute(question.text).description


def test_the_command_of_the_guide_answers_one(history: Path) -> None:
    (question,) = (q for q in QUESTIONS if "tool = 'bash'" in q.text)
    said = harness_batch(history.parents[1], "query", question.text, "--format", "csv").stdout
    assert said == "command,times\npython3 -m unittest,2\n"
