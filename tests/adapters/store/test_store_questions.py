"""Named questions: every answer by hand, narrowed, from an older history, and from Parquet."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from harness_batch.errors import UsageError
from harness_batch.store.database import closed_config
from harness_batch.store.parquet import export
from harness_batch.store.questions import (
    Narrowing,
    all_questions,
    open_questions,
    open_sets_for_user_sql,
)
from small_history import MODELS, OUTLIER, TWO_NIGHTS, at, build

usd = Decimal
EVERYTHING = Narrowing()
DAY_1, DAY_2 = date(2026, 3, 1), date(2026, 3, 2)

ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "usage_daily": [
        (DAY_1, 1, 3, 5, 4900, 1800, 390, usd("0.035"), 1),
        (DAY_2, 1, 2, 2, 3000, 3000, 10, usd("0.030"), 1),
    ],
    "usage_by_model": [
        ("p", "big", 5, 1, 7500, 4800, 360, usd("0.065"), 0),
        ("p", "small", 1, 0, 400, 0, 40, None, 1),
        ("q", "other", 1, 0, None, None, None, None, 1),
    ],
    "usage_by_recipe": [("fix", 4, 2, 1, 1, 7, 7900, 400, usd("0.065"), 2)],
    "token_mix": [
        ("p", "big", 1800, 4800, 800, 100, 360, 10),
        ("p", "small", 400, 0, 0, 0, 40, None),
        ("q", "other", None, None, None, None, None, None),
    ],
    "cache_hit_rate": [
        ("fix", "p", "big", 7500, 4800, 0.64),
        ("fix", "p", "small", 400, 0, 0.0),
        ("fix", "q", "other", None, None, None),
    ],
    "cost_per_passed": [
        ("fix", "q/other", 1, 0, None, None, 1),
        ("fix", "p/big", 3, 2, usd("0.065"), 0.0325, 1),
    ],
    "wasted_spend": [
        ("fix", "failed", "check:tests", 1, 2640, usd("0.020"), 1),
        ("fix", "errored", "infra.killed", 1, 0, None, 1),
    ],
    "tool_errors": [("bash", 4, 1, 1, 0, 1, 0.75), ("read", 1, 0, 0, 0, 0, 0.0)],
    "denials": [
        ("bash", "git push", None, "none", 2, 2),
        ("edit", ".env", "edit: .env: deny", "default", 1, 1),
    ],
    "latency": [("p", "big", 4, 1.1, 2.35, 5.0, 7.7, 18.0), ("p", "small", 1, 0.1, 0.1, 1, 1, 40)],
    "session_time": [("fix", 3, 60.0, 114.0, 60.0, 7.0, 2.0)],
    "budget_burn": [
        ("r1", at("1 10:00"), usd(2), usd("0.035"), 0.0175, 0.035, False, 1),
    ],
    "outliers": [],
    "trend": [
        ("fix", DAY_1, 2, 0.5, 2.0, 2645.0, usd("0.035")),
        ("fix", DAY_2, 2, 0.5, 0.5, 1505.0, usd("0.030")),
    ],
    "flaky_items": [("fix/y", "d2", 2, 1, 1, 0, at("2 10:01"))],
    "pass_at_k": [("fix", "p/big", 1, 2, 3, 0.75), ("fix", "p/big", 2, 1, 2, 1.0)],
    "resend_factor": [
        ("fix", "p", "big", 3, 4, 7500, 6500, 7500 / 6500),
        ("fix", "p", "small", 1, 1, 400, 400, 1.0),
    ],
    "model_compare": [],
    "price_gap": [
        ("p", "small", 1, 0, None, None, None, None, 1, 440),
        ("p", "big", 5, 2, usd("0.030"), usd("0.026"), usd("0.004"), 0.004 / 0.026, 0, 0),
        ("q", "other", 1, 0, None, None, None, None, 1, 0),
    ],
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("history") / "history.duckdb", TWO_NIGHTS)


def answers(
    path: Path, *names: str, narrowing: Narrowing = EVERYTHING
) -> dict[str, list[tuple[Any, ...]]]:
    """Of these questions, or of all."""
    with open_questions(path, narrowing) as questions:
        asked = names or [question.name for question in all_questions()]
        return {name: list(questions.answer(name).rows) for name in asked}


def same(row: tuple[Any, ...]) -> Any:
    return tuple(pytest.approx(cell) if isinstance(cell, float) else cell for cell in row)


@pytest.fixture(scope="module")
def answered(history: Path) -> dict[str, list[tuple[Any, ...]]]:
    return answers(history)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_what_the_rows_say(
    answered: dict[str, list[tuple[Any, ...]]], name: str
) -> None:
    assert answered[name] == [same(row) for row in ANSWERS[name]]


def test_rate_limits_are_counted_by_day(answered: dict[str, list[tuple[Any, ...]]]) -> None:
    ((provider, model, day, calls, limited, unavailable, worst_try, *_),) = answered["rate_limits"]
    assert (provider, model, day) == ("p", "big", DAY_1)
    assert (calls, limited, unavailable, worst_try) == (4, 1, 0, 2)


def test_models_are_compared_on_items_that_both_worked_on(tmp_path: Path) -> None:
    found = answers(build(tmp_path / "history.duckdb", MODELS), "model_compare")["model_compare"]
    assert found == [
        same(("job", "p/big", 1, 1, 1, 1.0, 1.0, 100.0, 0.4, 0.4, 240.0, 0)),
        same(("job", "q/other", 1, 1, 0, 0.0, 1.0, 300.0, 0.1, None, 120.0, 0)),
    ]


def test_a_session_far_above_the_others_of_its_recipe_is_an_outlier(tmp_path: Path) -> None:
    """Quartiles of 10, 20, 30, 40, 50, 500 are 22.5 and 47.5: the line is at 122.5 tokens."""
    found = answers(build(tmp_path / "history.duckdb", OUTLIER), "outliers")["outliers"]
    assert [row[:6] for row in found] == [same(("job", "job/f", "tokens", 500.0, 35.0, 500 / 35))]


def test_every_question_has_words_and_a_column_for_its_chart(history: Path) -> None:
    with open_questions(history, Narrowing()) as questions:
        for question in all_questions():
            columns = questions.answer(question.name).columns
            assert question.text.endswith("?")
            assert {question.chart, *question.labels} <= set(columns), question.name


def test_since_leaves_out_what_began_before(history: Path) -> None:
    names = ("usage_daily", "usage_by_recipe", "budget_burn", "denials")
    found = answers(history, *names, narrowing=Narrowing(since=at("2 0:00")))
    assert found["usage_daily"] == [same(ANSWERS["usage_daily"][1])]
    assert found["usage_by_recipe"] == [("fix", 2, 1, 0, 1, 2, 3000, 10, usd("0.030"), 1)]
    assert found["budget_burn"] == []
    assert found["denials"] == []


@pytest.mark.parametrize(("recipe", "there"), [("fix", 1), ("f*", 1), ("fi", 0), ("FIX", 0)])
def test_a_recipe_is_chosen_by_name_or_pattern(history: Path, recipe: str, there: int) -> None:
    found = answers(history, "usage_by_recipe", narrowing=Narrowing(recipe=recipe))
    assert len(found["usage_by_recipe"]) == there


@pytest.mark.parametrize("model", ["p/small", "small", "p/s*"])
def test_a_model_brings_its_calls_and_the_sessions_it_had_a_part_in(
    history: Path, model: str
) -> None:
    names = ("usage_by_model", "wasted_spend")
    found = answers(history, *names, narrowing=Narrowing(model=model))
    assert found["usage_by_model"] == [ANSWERS["usage_by_model"][1]]
    assert found["wasted_spend"] == [("fix", "failed", "check:tests", 1, 440, None, 1)]


def test_an_older_history_answers_with_what_it_has(history: Path, tmp_path: Path) -> None:
    older = build(tmp_path / "older.duckdb", TWO_NIGHTS)
    with duckdb.connect(str(older), config=closed_config()) as connection:
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal")
        for (view,) in views.fetchall():
            connection.execute(f'DROP VIEW "{view}"')
        connection.execute("ALTER TABLE model_call DROP COLUMN provider_cost_usd")
        connection.execute("DROP TABLE tool_call")
    found = answers(older, "usage_daily", "price_gap", "tool_errors")
    assert found["usage_daily"] == [same(row) for row in ANSWERS["usage_daily"]]
    assert found["price_gap"][1][:5] == ("p", "big", 5, 0, None)
    assert found["tool_errors"] == []


def test_parquet_sets_answer_as_the_history_does(
    history: Path, tmp_path: Path, answered: dict[str, list[tuple[Any, ...]]]
) -> None:
    sets = list(export(history, tmp_path / "sets"))
    assert [path.name for path in sets] == ["r1", "r2"]
    assert answers(tmp_path / "sets") == answered
    again = {path: path.read_bytes() for path in (tmp_path / "sets").rglob("*.parquet")}
    list(export(history, tmp_path / "sets", ["r1"]))
    assert {path: path.read_bytes() for path in again} == again, "the same rows, the same file"
    with open_sets_for_user_sql(tmp_path / "sets") as sql:
        assert list(sql.ask("SELECT count(*) FROM report_session").rows) == [(4,)]
        assert list(sql.ask("SELECT count(*) FROM usage_by_model").rows) == [(3,)]
        with pytest.raises(UsageError, match="refuses the query"):
            sql.ask("SELECT * FROM read_text('/etc/passwd')")


def test_a_run_that_is_not_there_is_not_exported(history: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run run_none"):
        list(export(history, tmp_path / "sets", ["run_none"]))
    with (
        pytest.raises(UsageError, match="holds no runs as Parquet"),
        open_questions(tmp_path, Narrowing()),
    ):
        pass


def test_a_question_that_is_none_is_told_what_was_meant(history: Path) -> None:
    with (
        open_questions(history, Narrowing()) as questions,
        pytest.raises(UsageError, match=r"no question 'usage_dayly'.*`usage_daily`"),
    ):
        questions.answer("usage_dayly")


def test_a_query_that_takes_too_long_is_stopped(history: Path) -> None:
    million = "range(1000000)"
    endless = f"SELECT count(*) FROM {million} AS a (i), {million} AS b (j) WHERE hash(i + j) = 3"
    with (
        open_questions(history, Narrowing()) as questions,
        questions.sql.for_at_most(0.05),
        pytest.raises(UsageError, match="took longer"),
    ):
        list(questions.sql.ask(endless).rows)
