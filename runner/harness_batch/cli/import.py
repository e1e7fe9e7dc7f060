"""`harness-batch import`: transcripts of other agents into the history."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness_batch.cli.options import config_options, option

if TYPE_CHECKING:
    from harness_batch.app.importing import Imported


@click.command()
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The history, instead of .harness/history.duckdb.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON list.")
@config_options
def command(
    *,
    files: tuple[Path, ...],
    db: Path | None,
    as_json: bool,
    config: Path | None,
    trust_repo: bool,
    repo_config: bool,
) -> None:
    """Bring transcripts of other agents into the history, to compare with.

    Claude Code and Codex (JSONL), Gemini CLI (JSON), opencode (SQLite): what a file is, is told by
    what is in it. Importing a session again replaces it. All files, or none when one has a fault.
    """
    from harness_batch.app.configuration import read_config
    from harness_batch.app.importing import import_transcripts
    from harness_batch.app.options import ConfigSources
    from harness_batch.app.places import history_of

    cwd, environ = Path.cwd(), dict(os.environ)
    sources = ConfigSources(
        cwd=cwd, environ=environ, explicit=config, trust_repo=trust_repo, repo_config=repo_config
    )
    told = import_transcripts(files, history_of(db, cwd), read_config(sources), environ)
    click.echo(_json(told) if as_json else "\n".join(map(_line, told)))


def _json(told: "Sequence[Imported]") -> str:
    rows = [
        {
            "file": str(one.file),
            "agent": one.agent,
            "run_id": one.run_id,
            "sessions": one.sessions,
            "models": list(one.models),
            "input_tokens": one.usage.input,
            "output_tokens": one.usage.output,
        }
        for one in told
    ]
    return json.dumps(rows, indent=2)


def _line(one: "Imported") -> str:
    from harness_batch_reports import figures
    from harness_batch_reports.hostile import one_line

    tokens = f"{figures.tokens(one.usage.input)} in, {figures.tokens(one.usage.output)} out"
    models = one_line(", ".join(one.models) or "no model", 80)
    sessions = figures.count(one.sessions, "session")
    return f"{one.run_id}  {one.agent}  {sessions}  {tokens}  {models}"
