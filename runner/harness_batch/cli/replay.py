"""`harness-batch replay`: recorded sessions again, without a model; what differs is shown."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from harness_batch.cli.options import config_options


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="SESSION...")
@click.option("--run", "run_word", metavar="RUN", help="Where to look: an id, a folder, or `last`.")
@click.option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The history, instead of .harness/history.duckdb.",
)
@click.option("--repo", metavar="PATH", help="The repository to work on.")
@click.option("--ref", metavar="REF", help="The commit to start from, instead of the recorded one.")
@click.option(
    "--recipe",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The recipe, instead of the recorded one.",
)
@click.option(
    "--update", is_flag=True, help="Accept what differs: it is the recording from now on."
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the recording of SESSION to FILE; nothing is run.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep the replay's run in DIR."
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "required", "off"]),
    default="auto",
    show_default=True,
    help="What to do when the host cannot contain the agent.",
)
@config_options
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401  # click's own
    """Run recorded sessions again with the recorded replies of their models; no model is called.

    SESSION is an id (`ses_...`), an item's key in the last run, or the file of a recording. Tools
    really run, in a fresh work tree. Exit code 1 when they answer differently now.
    """
    from harness_batch.app.options import Inputs
    from harness_batch.cli.replaying import replay

    inputs = Inputs(
        recipes=(),
        cwd=Path.cwd(),
        environ=dict(os.environ),
        config=values["config"],
        trust_repo=values["trust_repo"],
        repo_config=values["repo_config"],
    )
    argv = ("replay", *sys.argv[2:])
    ctx.exit(replay(inputs, values, argv))
