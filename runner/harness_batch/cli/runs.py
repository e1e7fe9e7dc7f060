"""`harness-batch runs`: which runs there are."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness_batch.store.folder import RunFolder


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
@click.option(
    "--limit",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="How many are listed.",
)
def command(as_json: bool, limit: int) -> None:
    """List the runs of this repository, newest first."""
    from harness_batch.app.places import harness_of
    from harness_batch.store.runs import list_runs

    rows = [_row(folder) for folder in list_runs(harness_of(Path.cwd()))[:limit]]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        click.echo("no runs yet")
    for row in rows:
        outcome = ", ".join(f"{number} {status}" for status, number in row["sessions"].items())
        code = "cut off" if row["exit_code"] is None else f"exit {row['exit_code']}"
        began = row["started_at"][:16].replace("T", " ")
        recipes = ", ".join(row["recipes"])
        click.echo(
            f"{row['run_id']}  {began}  {code}  {outcome or 'no sessions'}  {recipes}".rstrip()
        )


def _row(folder: "RunFolder") -> dict[str, Any]:
    from collections import Counter

    from harness_batch.app.resume import read_earlier

    earlier = read_earlier(folder.journal)
    run = earlier.run
    return {
        "run_id": folder.run_id() or folder.path.name,
        "folder": str(folder.path),
        "started_at": run.started_at if run else "never started",
        "exit_code": run.exit_code if run else None,
        "recipes": sorted({s.recipe for s in earlier.sessions.values()}),
        "sessions": dict(Counter(s.status or "unfinished" for s in earlier.sessions.values())),
    }
