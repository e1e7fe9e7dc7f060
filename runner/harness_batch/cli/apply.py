"""`harness-batch apply`: a session's patch onto a checkout."""

from pathlib import Path

import click

from harness_batch.errors import GitError, UsageError

_LONGEST_PATH = 4096
"""Characters shown of a path; Linux takes no longer one."""


@click.command()
@click.argument("session")
@click.option("--run", "run_word", metavar="RUN", help="Where to look: an id, a folder, or `last`.")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="PATH",
    help="The checkout to change.  [default: the current one]",
)
def command(session: str, run_word: str | None, repo: Path) -> None:
    """Apply the patch of SESSION (`ses_...`, or an item's key in the last run), 3-way.

    Files change, nothing is committed. Exit code 1 when it conflicts; the checkout is then as it
    was.
    """
    import trio

    from harness_batch.app.finish import patch_of
    from harness_batch.workspace.apply import apply_patch
    from harness_batch.workspace.repository import discover
    from harness_batch_reports.hostile import one_line

    patch = patch_of(session, run_word, Path.cwd())
    if patch is None:
        raise UsageError(f"{session} left no patch: nothing was changed")
    try:
        checkout = discover(Path.cwd() / repo.expanduser())
    except GitError as error:
        raise UsageError(str(error)) from error
    changed = trio.run(apply_patch, checkout, patch)
    if not changed:
        click.echo(f"{checkout.path} has this change already")
        return
    for path in changed:
        click.echo(one_line(path, _LONGEST_PATH))  # the agent chose the name
    click.echo("applied; look at it with `git diff` and commit what you want to keep")
