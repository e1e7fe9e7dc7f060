"""`harness-batch export`: runs for other programs, as Parquet files or as OpenTelemetry traces."""

from pathlib import Path

import click

from harness_batch.cli.options import option
from harness_batch.errors import UsageError


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option(
    "--parquet",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a folder for each run, a file for each table.",
)
@click.option(
    "--otel",
    is_flag=True,
    help="Send a trace of each run to OTEL_EXPORTER_OTLP_ENDPOINT.",
)
@option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The history, instead of .harness/history.duckdb.",
)
def command(*, runs: tuple[str, ...], parquet: Path | None, otel: bool, db: Path | None) -> None:
    """Export RUN... (ids, folders, `last`) as Parquet files or traces.

    Without RUN: every run of the history as Parquet, the last run as a trace.
    """
    from harness_batch.app.places import history_of
    from harness_batch.app.recorded import database_of
    from harness_batch.app.telemetry import send
    from harness_batch.store.parquet import export

    if (parquet is None) == (not otel):
        raise UsageError("say where to: --parquet DIR or --otel")
    cwd = Path.cwd()
    if otel:
        for word in runs or ("last",):
            database, run_id = database_of(word, db, cwd)
            click.echo(f"sent {send(database, run_id):,} spans of {run_id or word}")
        return
    assert parquet is not None, "one of the two was asked for"
    if not runs:
        for path in export(history_of(db, cwd), parquet):
            click.echo(str(path))
        return
    for word in runs:
        database, run_id = database_of(word, db, cwd)
        for path in export(database, parquet, () if run_id is None else (run_id,)):
            click.echo(str(path))
