"""`harness-batch models`: the catalog of models with limits, abilities and prices."""

import json
from pathlib import Path

import click

from harness_batch.cli.forms import written
from harness_batch.cli.options import config_options, sources_of
from harness_batch.cli.sources import print_all
from harness_batch.cli.streams import tell


@click.command()
@click.argument("provider", required=False)
@click.option("--search", metavar="WORD", help="Only models whose name holds WORD, of everybody.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with prices of all times.")
@config_options
def command(
    *,
    provider: str | None,
    search: str | None,
    as_json: bool,
    config: Path | None,
    trust_repo: bool,
    repo_config: bool,
) -> None:
    """List models with limits, abilities and today's prices (USD per million tokens).

    Without PROVIDER: of the configured providers. PROVIDER may be any that the catalog knows.
    """
    from datetime import UTC, datetime

    from harness_batch.app import model_list
    from harness_batch.app.configuration import read_config

    sources = sources_of(config, trust_repo, repo_config)
    moment = datetime.now(UTC)
    found = model_list.shown(read_config(sources), moment, provider=provider, word=search)
    if as_json:
        click.echo(json.dumps(model_list.as_json(found), indent=2))
        return
    print_all(written("table", model_list.COLUMNS, model_list.as_rows(found)))
    if not found:
        tell("harness-batch: no model is known by that name")
