"""`harness-batch plan`: the sessions that `run` would start; nothing is called."""

import json
from typing import Any

import click

from harness_batch.cli.options import InOrder, input_options, inputs_of, rules_of
from harness_batch.cli.streams import tell
from harness_batch.errors import Unsupported


@click.command(cls=InOrder)
@input_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--lock", metavar="FILE", hidden=True)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401  # click's own
    """Show what `run` would start: items, permissions, limits, models, checks."""
    from harness_batch.app.configuration import read_config
    from harness_batch.app.prepare import prepare
    from harness_batch.plan.view import plan_as_json, plan_as_text

    if values["lock"]:
        raise Unsupported("--lock is not supported by this version")
    inputs = inputs_of(values, rules_of(ctx, values))
    prepared = prepare(inputs, read_config(inputs.config_sources))
    if values["as_json"]:
        click.echo(json.dumps(plan_as_json(prepared.plan), ensure_ascii=False, indent=2))
        return
    for warning in prepared.plan.warnings:
        tell(str(warning))
    click.echo(plan_as_text(prepared.plan).rstrip("\n"))
