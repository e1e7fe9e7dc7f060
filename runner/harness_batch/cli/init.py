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
def command(sample: Path | None, recipe: Path) -> None:
    """Write a starter recipe here, or (--sample) the sample repository."""
    try:
        _make(sample, recipe)
    except OSError as error:
        raise UsageError(f"cannot make {sample or recipe}: {error.strerror}") from error


def _make(sample: Path | None, recipe: Path) -> None:
    from harness_batch.app.starter import make_sample, starter_recipe

    if sample is not None:
        make_sample(sample)
        click.echo(f"made {sample}: a git repository with one failing test")
        click.echo(f"next: harness-batch run fix-failing-test --repo {sample}")
        return
    if recipe.exists():
        raise UsageError(f"{recipe} is there already; name another file with --recipe")
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(starter_recipe(), encoding="utf-8")
    click.echo(f"wrote {recipe}")
    click.echo("next, with a model of yours for PROVIDER/MODEL:")
    for name in ("validate", "plan", "run"):
        click.echo(f"  harness-batch {name} {recipe} -m PROVIDER/MODEL")
