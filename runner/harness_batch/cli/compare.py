"""`harness-batch compare`: a run beside its baseline, and a gate when it is told what must hold."""

from decimal import Decimal
from pathlib import Path

import click

from harness_batch.cli.options import option
from harness_batch.errors import UsageError


@click.command()
@click.argument("run")
@click.argument("baseline")
@click.option(
    "--max-cost-increase",
    metavar="SHARE",
    help="Exit code 1 when the shared items cost more by more than this, e.g. 20%.",
)
@click.option(
    "--no-new-failures",
    is_flag=True,
    help="Exit code 1 when an item fails that did not fail in BASELINE.",
)
@click.option(
    "--format",
    "form",
    default="text",
    show_default=True,
    type=click.Choice(["text", "json", "markdown"]),
    help="How it is written.",
)
@option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The history, instead of .harness/history.duckdb.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    run: str,
    baseline: str,
    max_cost_increase: str | None,
    no_new_failures: bool,
    form: str,
    db: Path | None,
) -> None:
    """Compare RUN with BASELINE, item by item: outcome, cost, tokens, steps, denials, files.

    Each is an id, a folder, `last`, or an id that only the history knows.
    """
    from harness_batch.app.recorded import recorded
    from harness_batch_reports import comparison_pages, result_json
    from harness_batch_reports.comparison import Gate, compare

    gate = Gate(max_cost_increase=_share(max_cost_increase), no_new_failures=no_new_failures)
    cwd = Path.cwd()
    compared = compare(recorded(run, db, cwd), recorded(baseline, db, cwd))
    match form:
        case "json":
            text = result_json.as_text(comparison_pages.as_json(compared, gate))
        case "markdown":
            text = comparison_pages.as_markdown(compared, gate)
        case _:
            text = comparison_pages.as_text(compared, gate)
    click.echo(text, nl=False)
    if any(gate.refusals(compared)):
        ctx.exit(1)


_HIGHEST = Decimal(10) ** 12
"""A share with which costs can still be multiplied."""


def _share(text: str | None) -> Decimal | None:
    """`20%` is 0.2."""
    if text is None:
        return None
    try:
        share = Decimal(text.strip().removesuffix("%")) / 100
    except ArithmeticError:
        share = Decimal("NaN")
    if not text.strip().endswith("%") or not share.is_finite() or not 0 <= share <= _HIGHEST:
        raise UsageError(f"--max-cost-increase {text}: write a share such as 20%")
    return share
