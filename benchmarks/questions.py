"""Seconds of each named question on a big history: `python benchmarks/questions.py [CALLS]`.

Builds a history of so many model calls (a million) with all that belongs to them, and asks each
question three times: the best time of the question alone, and of the whole command once.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attrs import frozen

from harness_batch.store.database import Database
from harness_batch.store.questions import Narrowing, all_questions, open_questions

DEFAULT_CALLS = 1_000_000
TIMES = 3


@frozen
class Measured:
    """One question."""

    name: str
    rows: int
    question_s: float
    command_s: float


def build(path: Path, calls: int) -> None:
    """The history."""
    database = Database(path)
    database.connection.execute(f"SET VARIABLE calls = {calls}")
    sql = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    for statement in database.connection.extract_statements(sql):
        database.connection.execute(statement)
    database.close({})


def measure(path: Path, name: str) -> Measured:
    """Ask one question."""
    best, rows = 1e9, 0
    for _ in range(TIMES):
        with open_questions(path, Narrowing()) as questions:
            begin = time.perf_counter()
            rows = len(list(questions.answer(name).rows))
            best = min(best, time.perf_counter() - begin)
    begin = time.perf_counter()
    words = ["stats", name, "--db", str(path), "--format", "csv"]
    subprocess.run(
        [sys.executable, "-m", "harness_batch", *words], check=True, stdout=subprocess.DEVNULL
    )
    return Measured(name, rows, best, time.perf_counter() - begin)


def main() -> None:
    """Measure and print."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_CALLS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.duckdb")
        build(path, calls)
        print(f"{calls:,} model calls, {path.stat().st_size / 1e6:,.0f} MB\n")
        print("| question | rows | question s | command s |\n|---|---|---|---|")
        for question in all_questions():
            one = measure(path, question.name)
            print(f"| `{one.name}` | {one.rows:,} | {one.question_s:.2f} | {one.command_s:.2f} |")


if __name__ == "__main__":
    main()
