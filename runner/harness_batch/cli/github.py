"""`harness-batch github`: what the steps of the GitHub actions call: run, comment, propose."""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness_batch.cli.streams import tell
from harness_batch.errors import UsageError

if TYPE_CHECKING:
    from harness_batch.app.proposals import Publisher, Wishes
    from harness_batch.store.folder import RunFolder
    from harness_batch_reports.records import BatchReport


@click.group()
def command() -> None:
    """Run in a job of GitHub Actions, comment on its pull request, propose patches."""


@command.command()
@click.pass_context
def run(ctx: click.Context) -> None:
    """Run the recipes of the step's inputs, and write the step's outputs.

    The inputs come by the variables that `action.yml` sets. In a pull request recipes are taken
    from its base commit.
    """
    from harness_batch.app.github_job import (
        NOTHING_RAN,
        environment_of,
        job_of,
        read_trigger,
        say,
        words_of,
    )
    from harness_batch.cli.main import call

    cwd = Path.cwd()
    job = job_of(os.environ, cwd)
    code = NOTHING_RAN
    try:
        with tempfile.TemporaryDirectory(prefix="harness-batch-base-") as aside:
            trigger = read_trigger(os.environ)
            words = words_of(job, trigger, cwd, Path(aside))
            os.environ.update(environment_of(trigger))
            with _commands_stopped():
                code = call(words)
    finally:
        say(job, code)
    if code != NOTHING_RAN and os.environ.get("ACTION_ANNOTATIONS") != "false":
        _annotate(job.out)
    ctx.exit(code)


@command.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
def comment(run_folder: Path) -> None:
    """Write the report of RUN (a folder) as a comment on the job's pull request.

    One comment for each recipe, renewed by every run. Needs GITHUB_TOKEN with the permission
    `pull-requests: write`, and no key of a model.
    """
    from harness_batch.app.github_job import read_trigger
    from harness_batch.app.proposals import by_recipe
    from harness_batch.github.api import Api
    from harness_batch.github.comments import stick
    from harness_batch_reports import markdown

    trigger = read_trigger(os.environ)
    if trigger.number is None:
        tell("harness-batch: this job has no pull request to comment on")
        return
    api = Api.of(os.environ)
    _, report = _reported(run_folder)
    for recipe, part in by_recipe(report):
        click.echo(stick(api, trigger.number, recipe, markdown.comment(part, _ROOM)))


@command.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="PATH",
    help="A checkout with the base commits.  [default: the current one]",
)
@click.option(
    "--base",
    metavar="BRANCH",
    help="What the pull requests are against.  [default: the default branch]",
)
@click.option(
    "--repository",
    metavar="OWNER/NAME",
    help="Where the pull requests are opened.  [default: the job's repository]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Only items whose key matches; repeatable.",
)
@click.option(
    "--branch-prefix",
    default="harness-batch/",
    show_default=True,
    metavar="TEXT",
    help="What the branches' names begin with.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME",
    help="A label of the pull requests; repeatable.",
)
@click.option("--draft", is_flag=True, help="Open drafts.")
@click.option(
    "--allow",
    multiple=True,
    metavar="GLOB",
    help="Paths that a patch may touch; repeatable.  [default: all that is not protected]",
)
@click.pass_context
def propose(ctx: click.Context, /, **values: Any) -> None:  # noqa: ANN401  # click's own
    """Open a pull request for each patch of RUN (a folder) whose session passed.

    The patch is checked again: hash, base, size, protected paths, duplicates. The branch of an
    item is the same every night. Needs GITHUB_TOKEN with `contents: write` and
    `pull-requests: write`, and no key of a model. Exit code 1 when a patch is refused.
    """
    import trio

    from harness_batch_reports.hostile import one_line

    publisher = _publisher(values)
    states: list[str] = []

    async def tell_each() -> None:
        async for one in publisher.each():
            click.echo(one_line(f"{one.state} {one.item_key}: {one.words}", 500))
            states.append(one.state)

    trio.run(tell_each)
    if not states:
        click.echo("nothing to propose: no session passed with a patch")
    ctx.exit(1 if "refused" in states else 0)


def _publisher(values: dict[str, Any]) -> "Publisher":
    from harness_batch.app.github_job import read_trigger
    from harness_batch.app.proposals import Publisher, alone, remote_of
    from harness_batch.github.api import Api
    from harness_batch.github.pulls import default_branch
    from harness_batch.plan.select import select_keys
    from harness_batch.workspace.repository import discover

    environ = dict(os.environ)
    if values["repository"]:
        environ["GITHUB_REPOSITORY"] = values["repository"]
    api = Api.of(environ)
    event = None if values["repository"] else read_trigger(environ).default_branch
    folder, report = _reported(values["run_folder"])
    wanted = select_keys([one.item_key for one in report.sessions], values["only"])
    return Publisher(
        folder=folder,
        report=alone(report, [one for one in report.sessions if one.item_key in wanted]),
        repository=discover(values["repo"].absolute()),
        remote=remote_of(environ),
        api=api,
        wishes=_wishes(values["base"] or event or default_branch(api), values),
    )


def _wishes(base: str, values: dict[str, Any]) -> "Wishes":
    from harness_batch.app.proposals import Wishes
    from harness_batch.recipe.record import PatchRules

    return Wishes(
        base=base,
        prefix=values["branch_prefix"],
        labels=values["labels"],
        draft=values["draft"],
        rules=PatchRules(allow=values["allow"]),
    )


_ROOM = 200
"""Characters that the mark of a comment takes."""


def _reported(run_folder: Path) -> "tuple[RunFolder, BatchReport]":
    from harness_batch.app.finish import reported
    from harness_batch.store.folder import RunFolder

    folder = RunFolder(run_folder.absolute())
    if not folder.journal.is_file() and not folder.database.is_file():
        raise UsageError(f"{run_folder} is no folder of a run: it has no events.jsonl")
    return folder, reported(folder)


@contextmanager
def _commands_stopped() -> Iterator[None]:
    """Nothing that is printed meanwhile is a workflow command, whoever wrote it."""
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    sys.stdout.flush()
    try:
        yield
    finally:
        sys.stderr.flush()
        click.echo(f"\n::{token}::")
        sys.stdout.flush()


def _annotate(out: Path) -> None:
    from harness_batch.errors import HarnessError
    from harness_batch_reports import github

    try:
        _, report = _reported(out)
    except HarnessError:
        return  # there was no run, and why was told
    click.echo(github.annotations(report, Path.cwd()), nl=False)
