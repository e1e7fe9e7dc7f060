"""`harness-batch permissions`: what rules decided, the least that would do, what decides a call."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness_batch.app.options import Inputs
from harness_batch.cli.options import InOrder, input_options, inputs_of, option, pair, rules_of
from harness_batch.errors import UsageError

if TYPE_CHECKING:
    from harness_batch.permissions.recorded import DecidedCall, Policies


class _Permissions(click.Group):
    """`permissions RUN...` is `permissions decided RUN...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the hidden command in front of what is no command."""
        if args and args[0] not in ("explain", "--help", "-h"):
            args = ["decided", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of the hidden command: they are what follows `permissions RUN...`."""
        there = (one for one in decided.get_params(ctx) if isinstance(one, click.Option))
        rows = [told for one in there if (told := one.get_help_record(ctx))]
        with formatter.section("Options"):
            formatter.write_dl(rows)
        self.format_commands(ctx, formatter)


@click.group(cls=_Permissions, no_args_is_help=True, subcommand_metavar="RUN... | explain RECIPE")
def command() -> None:
    """Tell which rules decided what in RUN..., suggest the least rules, try others.

    RUN is an id, a folder, `last`, or an id that the history knows. `permissions explain RECIPE
    --tool bash 'git push'` says which rule decides a call, before anything runs.
    """


@command.command(hidden=True)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--suggest", is_flag=True, help="The least rules that would have allowed what was used."
)
@click.option(
    "--try",
    "tried",
    metavar="RECIPE",
    help="What other rules, those of this recipe, would decide otherwise.",
)
@click.option(
    "--format",
    "form",
    default="text",
    show_default=True,
    type=click.Choice(["text", "json"]),
    help="How it is written.",
)
@option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The history, instead of .harness/history.duckdb.",
)
@click.option(
    "-p",
    "parameters",
    "--param",
    multiple=True,
    metavar="KEY=VALUE",
    help="A parameter of the recipe; repeatable.",
)
@option(
    "--repo",
    "repos",
    multiple=True,
    metavar="PATH|@FILE",
    help="The repository to work on; repeatable; @FILE holds one a line.",
)
def decided(
    *,
    runs: tuple[str, ...],
    suggest: bool,
    tried: str | None,
    form: str,
    db: Path | None,
    parameters: tuple[str, ...],
    repos: tuple[str, ...],
) -> None:
    """Tell which rules decided what in RUN...: ids, folders, `last`."""
    from harness_batch.cli import permission_pages as pages
    from harness_batch.permissions.recorded import retried, suggestions

    if suggest and tried is not None:
        raise UsageError("--suggest and --try answer two questions; choose one")
    calls = [call for word in runs for call in _calls(word, db)]
    if suggest:
        found = suggestions(calls)
        click.echo(pages.suggested_json(found) if form == "json" else pages.suggested(found))
    elif tried is not None:
        inputs = Inputs(
            recipes=(tried,),
            cwd=Path.cwd(),
            environ=dict(os.environ),
            parameters=dict(pair("-p", text) for text in parameters),
            repos=repos,
        )
        result = retried(calls, _policies(inputs, {call.recipe for call in calls}))
        click.echo(pages.retried_json(result) if form == "json" else pages.retried(result, tried))
    else:
        click.echo(pages.decided_json(calls) if form == "json" else pages.decided(calls))


def _calls(word: str, db: Path | None) -> "tuple[DecidedCall, ...]":
    from harness_batch.app.recorded import database_of
    from harness_batch.store.decisions import decided_calls

    database, run_id = database_of(word, db, Path.cwd())
    return decided_calls(database, run_id)


def _policies(inputs: Inputs, ran: set[str]) -> "Policies":
    from harness_batch.app.configuration import read_config
    from harness_batch.app.prepare import prepare
    from harness_batch.permissions.judge import Policy
    from harness_batch.permissions.recorded import Policies

    items = prepare(inputs, read_config(inputs.config_sources)).plan.items
    policies = {item.key: Policy(item.rules, item.agent.rules) for item in items}
    names = {item.recipe.name for item in items}
    return Policies(
        by_item=policies,
        other=next(iter(policies.values()), None),
        recipe=next(iter(names & ran), None),
    )


@command.command(cls=InOrder)
@click.option("--tool", required=True, metavar="NAME", help="explain: the tool that is called.")
@click.option("--json", "as_json", is_flag=True, help="explain: one JSON object.")
@input_options
@click.pass_context
def explain(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401  # click's own
    """Tell which rule of which file decides a call: RECIPE --tool NAME INPUT.

    INPUT is a command for bash, a path for read, edit, write, glob and grep, a URL for webfetch, a
    name for task and skill, or the tool's arguments as a JSON object.
    """
    from harness_batch.app.configuration import read_config
    from harness_batch.app.explaining import explain as explained
    from harness_batch.app.prepare import prepare
    from harness_batch.cli import permission_pages as pages

    *recipes, given = values["recipes"]
    if not recipes:
        raise UsageError("write permissions explain RECIPE --tool NAME INPUT")
    values["recipes"] = tuple(recipes)
    inputs = inputs_of(values, rules_of(ctx, values))
    items = prepare(inputs, read_config(inputs.config_sources)).plan.items
    answers = [explained(item, values["tool"], given) for item in items]
    if values["as_json"]:
        click.echo(pages.explained_json(answers))
    else:
        click.echo(pages.explained(answers))
    ctx.exit(0 if all(answer.allowed for answer in answers) else 1)
