"""`harness-batch show`: one session's transcript."""

import json
from pathlib import Path

import click


@click.command()
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of Markdown.")
@click.option("--run", "run_word", metavar="RUN", help="Where to look: an id, a folder, or `last`.")
def command(session: str, as_json: bool, run_word: str | None) -> None:
    """Show the transcript of SESSION (`ses_...`, or an item's key in the last run)."""
    from harness_batch.app.finish import session_of
    from harness_batch_reports import transcript
    from harness_batch_reports.read import read_session

    folder, session_id = session_of(session, run_word, Path.cwd())
    told = read_session(folder.database, session_id)
    if as_json:
        click.echo(json.dumps(transcript.as_json(told), ensure_ascii=False, indent=2))
    else:
        click.echo(transcript.markdown(told), nl=False)
