"""`harness-batch run`: the sessions of recipes, their database, reports and patches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness_batch.app.options import RunOptions
from harness_batch.cli.defaults import WithConfigDefaults, config_of
from harness_batch.cli.options import (
    Decorator,
    input_options,
    inputs_of,
    money,
    option,
    rules_of,
)
from harness_batch.errors import Unsupported, UsageError
from harness_batch.limits import duration_seconds

Value = TypeVar("Value")

NOT_YET = ("repeat", "executor", "no_cache")
"""Options of the contract whose engine does not exist yet; refused by name."""


def _path(name: str, text: str) -> Decorator:
    return option(name, type=click.Path(path_type=Path), metavar="FILE", help=text)


@click.command(cls=WithConfigDefaults)
@input_options
@option(
    "-j",
    "--jobs",
    type=click.IntRange(1, 1024),
    default=4,
    show_default=True,
    help="Sessions at a time.",
)
@option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The run's folder, instead of .harness/runs/RUN.",
)
@_path("--db", "The history, instead of .harness/history.duckdb.")
@_path("--junit", "One more copy of junit.xml.")
@option(
    "--junit-dialect",
    "dialect",
    default="plain",
    show_default=True,
    type=click.Choice(["plain", "surefire", "gitlab", "azure", "jenkins"]),
    help="What the CI system reads.",
)
@_path("--summary", "One more copy of summary.md.")
@_path("--html", "One more copy of report.html.")
@_path("--sarif", "What reviews found as SARIF, be it nothing; as report.sarif.")
@option("--events", metavar="FILE|-", help="The events as JSON lines; - is stdout.")
@option("--max-cost", metavar="USD", help="The run may not cost more.")
@option("--max-time", metavar="DUR", help="The run may not last longer, e.g. 90m.")
@option(
    "--max-failures",
    type=click.IntRange(1),
    metavar="N",
    help="Stop after so many failed or errored sessions.",
)
@option(
    "--sandbox",
    type=click.Choice(["auto", "required", "off"]),
    default="auto",
    show_default=True,
    help="What to do when the host cannot contain the agent.",
)
@option(
    "--shard",
    metavar="I/N|auto",
    help="Only this part of the plan; auto asks the CI system.",
)
@option("--keep-worktrees", is_flag=True, help="Leave the work trees for a look.")
@option("--resume", metavar="RUN|last", help="Go on with a run that was cut off.")
@option(
    "--rerun",
    type=click.Choice(["failed", "errored"]),
    help="Run those items again; goes on with the last run.",
)
@option(
    "--progress",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "rich", "plain", "json", "github", "none"]),
    help="What stderr shows.",
)
@option("--json", "as_json", is_flag=True, help="stdout is one JSON object.")
@option("--repeat", metavar="N", hidden=True)
@option("--executor", metavar="URL", hidden=True)
@option("--no-cache", is_flag=True, hidden=True)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401  # click's own
    """Run the sessions of recipes; write database, reports and patches.

    RECIPE is a file or the name of a bundled recipe. stdout carries the summary only.
    """
    from harness_batch.cli.running import run

    for name in NOT_YET:
        if values[name]:
            raise Unsupported(f"--{name.replace('_', '-')} is not supported by this version")
    if values["events"] == "-" and values["as_json"]:
        raise UsageError("--events - and --json both want stdout; choose one")
    inputs = inputs_of(values, rules_of(ctx, values))
    ctx.exit(
        run(
            inputs,
            config_of(ctx, inputs),
            _run_options(values, ("run", *ctx.meta["argv"])),
            progress=values["progress"],
            as_json=values["as_json"],
        )
    )


def _run_options(values: dict[str, Any], argv: tuple[str, ...]) -> RunOptions:
    return RunOptions(
        jobs=values["jobs"],
        out=values["out"],
        db=values["db"],
        junit=values["junit"],
        dialect=values["dialect"],
        summary=values["summary"],
        html=values["html"],
        sarif=values["sarif"],
        events=Path(values["events"]) if values["events"] else None,
        max_cost=_checked("--max-cost", values["max_cost"], money),
        max_seconds=_checked("--max-time", values["max_time"], duration_seconds),
        max_failures=values["max_failures"],
        sandbox=values["sandbox"],
        keep_worktrees=values["keep_worktrees"],
        shard=values["shard"],
        resume=values["resume"] or ("last" if values["rerun"] else None),
        rerun=values["rerun"],
        argv=argv,
    )


def _checked(name: str, text: str | None, parse: Callable[[str], Value]) -> Value | None:
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"{name} {text}: {error}") from error
