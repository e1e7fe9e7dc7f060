"""`harness-batch stats`: named questions to the history."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness_batch.cli.forms import FORMS, written
from harness_batch.cli.options import config_options, sources_of
from harness_batch.cli.sources import moment, print_all, source_of, source_options
from harness_batch.errors import UsageError

if TYPE_CHECKING:
    from harness_batch.app.options import ConfigSources
    from harness_batch.store.asking import Answer
    from harness_batch.store.questions import Question, Questions


@click.command()
@click.argument("name", required=False)
@click.option("--list", "listed", is_flag=True, help="Name the questions.")
@click.option(
    "--reprice", is_flag=True, help="What the calls would cost at today's prices; without NAME."
)
@source_options
@click.option(
    "--since",
    metavar="WHEN",
    help="Only sessions that began since: 7d, 12h, or a date such as 2026-03-01.",
)
@click.option("--recipe", metavar="GLOB", help="Only sessions of such recipes.")
@click.option("--model", metavar="GLOB", help="Only calls of such models, and their sessions.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["chart", *FORMS]),
    help="How the answer is written. Default: chart on a terminal, else table.",
)
@config_options
def command(
    *,
    name: str | None,
    listed: bool,
    reprice: bool,
    db: Path | None,
    run_word: str | None,
    since: str | None,
    recipe: str | None,
    model: str | None,
    form: str | None,
    config: Path | None,
    trust_repo: bool,
    repo_config: bool,
) -> None:
    """Answer a named question from the history, e.g. `stats usage_daily --since 30d`."""
    from harness_batch.store.questions import (
        Narrowing,
        all_questions,
        named,
        open_questions,
    )

    if reprice and name is not None:
        raise UsageError(f"--reprice is a question of its own: leave out {name}")
    if listed or (name is None and not reprice):
        rows = [(question.name, question.text) for question in all_questions()]
        print_all(written(form if form in FORMS else "table", ("name", "question"), rows))
        return
    question = None if name is None else named(name)
    narrowing = Narrowing(since=moment("--since", since), recipe=recipe, model=model)
    with open_questions(source_of(db, run_word), narrowing) as questions:
        if question is None:
            sources = sources_of(config, trust_repo, repo_config)
            _print(*_repriced(questions, sources), form or _fitting())
        else:
            _print(question, questions.answer(question.name), form or _fitting())


def _repriced(questions: "Questions", sources: "ConfigSources") -> tuple["Question", "Answer"]:
    """Today's prices beside the recorded ones: of this configuration, else of the catalog."""
    from datetime import UTC, datetime

    from harness_batch.app.configuration import read_config
    from harness_batch.app.reprice import todays_rates
    from harness_batch.store.reprice import QUESTION, called_models, repriced

    models = called_models(questions)
    rates = todays_rates(models, read_config(sources), datetime.now(UTC))
    return QUESTION, repriced(questions, rates)


def _fitting() -> str:
    return "chart" if sys.stdout.isatty() else "table"


def _print(question: "Question", answer: "Answer", form: str) -> None:
    if form != "chart":
        print_all(written(form, answer.columns, answer.rows))
        return
    from rich.console import Console

    from harness_batch.cli.charts import bars, left_out, terminal_width

    console = Console(no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    console.width = terminal_width(console)
    rows = list(answer.rows)
    console.print(question.text, style="bold", markup=False)
    if not rows:
        console.print("Nothing is known yet.")
        return
    console.print(bars(answer.columns, rows, labels=question.labels, value=question.chart))
    more = left_out(rows)
    if more:
        console.print(f"and {more:,} more; --format table has all rows and columns", markup=False)
