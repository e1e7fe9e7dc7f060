"""`harness-batch apply`: a session's patch onto the current checkout."""

from pathlib import Path

import click

from harness_batch.errors import UsageError


@click.command()
@click.argument("session")
@click.option("--run", "run_word", metavar="RUN", help="Where to look: an id, a folder, or `last`.")
def command(session: str, run_word: str | None) -> None:
    """Apply the patch of SESSION (`ses_...`, or an item's key in the last run), 3-way.

    Exit code 1 when it conflicts; the checkout is then as it was.
    """
    import trio

    from harness_batch.app.finish import patch_of
    from harness_batch.workspace.apply import apply_patch
    from harness_batch.workspace.repository import discover

    patch = patch_of(session, run_word, Path.cwd())
    if patch is None:
        raise UsageError(f"{session} left no patch: nothing was changed")
    changed = trio.run(apply_patch, discover(Path.cwd()), patch)
    if not changed:
        click.echo("nothing to do: the checkout has these changes already")
        return
    click.echo(
        f"applied to {len(changed)} file(s); look at `git diff`, commit what you want to keep"
    )
