"""`harness-batch init`: a starter recipe, or the sample repository of the README."""

from pathlib import Path

import click

from harness_batch.errors import UsageError


@click.command()
@click.option(
    "--sample",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Make a git repository whose test fails, for `run fix-failing-test`.",
)
@click.option(
    "--recipe",
    "recipe",
    default="recipes/first.yaml",
    show_default=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the recipe goes.",
)
@click.option(
    "--workflow",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also a workflow of GitHub Actions, e.g. .github/workflows/agents.yml.",
)
def command(sample: Path | None, recipe: Path, workflow: Path | None) -> None:
    """Write a starter recipe (and a workflow) here, or (--sample) the sample repository."""
    try:
        _make(sample, recipe, workflow)
    except OSError as error:
        place = sample or error.filename or recipe
        raise UsageError(f"cannot make {place}: {error.strerror}") from error


def _make(sample: Path | None, recipe: Path, workflow: Path | None) -> None:
    from harness_batch.app.starter import make_sample, starter_recipe, starter_workflow

    if sample is not None:
        make_sample(sample)
        click.echo(f"made {sample}: a git repository with one failing test")
        click.echo(f"next: harness-batch run fix-failing-test --repo {sample}")
        return
    if workflow is not None and workflow.exists():
        raise UsageError(f"{workflow} is there already; name another file with --workflow")
    if recipe.exists() and workflow is None:
        raise UsageError(f"{recipe} is there already; name another file with --recipe")
    if not recipe.exists():
        _write(recipe, starter_recipe())
    if workflow is not None:
        _write(workflow, starter_workflow(recipe))
    click.echo("next, with a model of yours for PROVIDER/MODEL:")
    for name in ("validate", "plan", "run"):
        click.echo(f"  harness-batch {name} {recipe} -m PROVIDER/MODEL")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    click.echo(f"wrote {path}")
