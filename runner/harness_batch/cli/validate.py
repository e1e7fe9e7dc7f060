"""`harness-batch validate`: all faults of recipes at once, without calling anything."""

from typing import Any

import click

from harness_batch.cli.options import InOrder, input_options, inputs_of, rules_of
from harness_batch.cli.streams import tell


@click.command(cls=InOrder)
@input_options
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401  # click's own
    """Check recipes: schema, parameters, templates, permissions, models.

    Nothing is called and nothing is started. Faults are `file:line:col: message`; exit code 2 when
    there is one, 0 when there are warnings only.
    """
    from harness_batch.app.configuration import read_config
    from harness_batch.app.prepare import prepare
    from harness_batch_reports import figures

    inputs = inputs_of(values, rules_of(ctx, values))
    prepared = prepare(inputs, read_config(inputs.config_sources))
    for warning in prepared.plan.warnings:
        tell(str(warning))
    count = len(prepared.plan.items)
    recipes = len(set(values["recipes"]))
    click.echo(f"valid: {figures.count(recipes, 'recipe')}, {figures.count(count, 'session')}")
