"""`harness-batch merge`: the runs of shards or machines as one run with one report."""

from pathlib import Path
from typing import Any

import click

from harness_batch.cli.streams import tell


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("inputs", nargs=-1, required=True, metavar="IN...", type=click.Path(path_type=Path))
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The history, instead of .harness/history.duckdb.",
)
@click.option(
    "--junit-dialect",
    "dialect",
    default="plain",
    show_default=True,
    type=click.Choice(["plain", "surefire", "gitlab", "azure", "jenkins"]),
    help="What the CI system reads.",
)
@click.option(
    "--junit", type=click.Path(path_type=Path), metavar="FILE", help="One more copy of junit.xml."
)
@click.option(
    "--summary",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="One more copy of summary.md.",
)
@click.option("--json", "as_json", is_flag=True, help="stdout is one JSON object.")
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401  # click's own
    """Join the runs at or below each IN into the folder OUT, and report them as one.

    The shards of one `run --shard I/N`: what they left is only read, and doing it again gives the
    same. Exit code 1 when a shard is missing or died; 2 for runs of different inputs.
    """
    from harness_batch.app.finish import Copies
    from harness_batch.app.merge import merge_runs
    from harness_batch.app.places import history_of
    from harness_batch_reports import console, result_json

    cwd = Path.cwd()
    copies = Copies(
        dialect=values["dialect"],
        junit=cwd / values["junit"] if values["junit"] else None,
        summary=cwd / values["summary"] if values["summary"] else None,
        project=cwd,
    )
    places = [cwd / place for place in values["inputs"]]
    merged = merge_runs(cwd / values["out"], places, history_of(values["db"], cwd), copies)
    for text in merged.troubles:
        tell(f"harness-batch: {text}")
    if values["as_json"]:
        click.echo(result_json.as_text(result_json.result(merged.report)), nl=False)
    else:
        click.echo(console.screen(merged.report), nl=False)
    ctx.exit(0 if merged.complete else 1)
