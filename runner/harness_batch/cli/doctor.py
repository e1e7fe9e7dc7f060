"""`harness-batch doctor`: what this host can do for a run, and what is missing."""

import json
import shutil
import sys
from pathlib import Path

import click

from harness_batch import __version__
from harness_batch.cli.streams import tell


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="One more configuration file."
)
def command(as_json: bool, config: Path | None) -> None:
    """Say what is enforced on this host, what is not, and how to get more."""
    import os

    import trio

    from harness_batch.app.credentials import credential_states
    from harness_batch.config.door import load_config
    from harness_batch.sandbox.probe import host_properties

    found = trio.run(host_properties)
    loaded = load_config(repo=Path.cwd(), explicit=config, environ=os.environ)
    programs = {name: shutil.which(name) for name in ("git", "bash", "rg")}
    providers = {state.provider: state.told for state in credential_states(loaded)}
    if as_json:
        facts = {
            "version": __version__,
            "python": sys.version.split()[0],
            "programs": programs,
            "providers": providers,
            "config_files": [str(file) for file in loaded.files],
            "sandbox": {name: {"holds": p.holds, "why": p.why} for name, p in found.items()},
        }
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"harness-batch {__version__}, Python {sys.version.split()[0]}")
    for name, path in programs.items():
        click.echo(f"  {name:<20} {path or _MISSING.get(name, 'missing')}")
    click.echo("providers")
    for name, state in providers.items():
        click.echo(f"  {name:<20} {state}")
    click.echo("sandbox: what holds for every program that an agent runs")
    for name, prop in found.items():
        click.echo(f"  {name:<20} {'yes' if prop.holds else f'no: {prop.why}'}")
    for warning in loaded.warnings:
        tell(str(warning))


_MISSING = {"rg": "missing: grep uses Python instead; apt-get install ripgrep is quicker"}
