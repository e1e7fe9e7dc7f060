"""What the calls of a history would have cost at other rates, beside what was recorded."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import duckdb
from attrs import astuple, frozen

from harness_batch.store.asking import Answer
from harness_batch.store.database import sql_file
from harness_batch.store.questions import Question, Questions

NO_END: Final = 2**62
"""More input than any call has."""
QUESTION: Final = Question(
    "reprice",
    "What would the calls cost at today's prices, beside what was recorded?",
    "difference_usd",
    ("provider", "model"),
)


@frozen(kw_only=True)
class TodayRate:
    """US dollars per million tokens for calls of a model with so much input; None is unknown."""

    provider: str
    model: str
    from_tokens: int
    to_tokens: int = NO_END
    """Just above the last count that it holds for."""
    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    version: str | None = None


def called_models(questions: Questions) -> Sequence[tuple[str, str]]:
    """Provider and model of every call, each pair once. Raises: UsageError."""
    answer = questions.sql.ask(
        "SELECT DISTINCT provider, request_model FROM model_call ORDER BY ALL"
    )
    return [(str(provider), str(model)) for provider, model in answer.rows]


def repriced(questions: Questions, rates: Iterable[TodayRate]) -> Answer:
    """A row for each model: recorded and repriced cost, and their difference.

    Raises: UsageError.
    """
    connection = questions.sql.connection
    _make(connection)
    rows = [astuple(rate) for rate in rates]
    if rows:
        places = ", ".join("?" for _ in rows[0])
        connection.executemany(f"INSERT INTO today_rate VALUES ({places})", rows)  # noqa: S608 - question marks
    return questions.sql.ask(sql_file("reprice.sql"))


def _make(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE today_rate ("
        "provider VARCHAR, model VARCHAR, from_tokens BIGINT, to_tokens BIGINT, "
        "input DECIMAL(18,9), output DECIMAL(18,9), cache_read DECIMAL(18,9), "
        "cache_write DECIMAL(18,9), cache_write_1h DECIMAL(18,9), version VARCHAR)"
    )
    # A rate that nobody knows matters only where there are tokens.
    connection.execute(
        "CREATE OR REPLACE TEMP MACRO part(tokens, rate) AS "
        "CASE WHEN coalesce(tokens, 0) = 0 THEN 0 ELSE tokens * rate END"
    )
