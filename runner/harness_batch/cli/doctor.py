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

    from harness_batch.app.containment import examined
    from harness_batch.config.door import load_config
    from harness_batch.sandbox.host import mends

    host = trio.run(examined, os.environ)
    steps = tuple(mends(host))
    found = host.properties
    loaded = load_config(repo=Path.cwd(), explicit=config, environ=os.environ)
    programs = {name: shutil.which(name) for name in ("git", "bash", "rg", "bwrap")}
    providers = {
        name: "ready" if settings.api_key or settings.type == "scripted" else
        f"no key: set {settings.api_key_env}" if settings.api_key_env else "no key"
        for name, settings in loaded.providers.items()
    }  # fmt: skip
    if as_json:
        facts = {
            "version": __version__,
            "python": sys.version.split()[0],
            "programs": programs,
            "providers": providers,
            "config_files": [str(file) for file in loaded.files],
            "sandbox": {name: {"holds": p.holds, "why": p.why} for name, p in found.items()},
            "sandbox_mechanism": host.mechanism,
            "sandbox_passed_over": dict(host.passed_over),
            "sandbox_mends": steps,
        }
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"harness-batch {__version__}, Python {sys.version.split()[0]}")
    for name, path in programs.items():
        click.echo(f"  {name:<20} {path or _MISSING.get(name, 'missing')}")
    click.echo("providers")
    for name, state in providers.items():
        click.echo(f"  {name:<20} {state}")
    click.echo(f"sandbox: what holds for every program that an agent runs ({host.mechanism})")
    for name, prop in found.items():
        click.echo(f"  {name:<20} {'yes' if prop.holds else f'no: {prop.why}'}")
    for mechanism, why in host.passed_over.items():
        click.echo(f"  not by {mechanism}: {why}")
    for step in steps:
        click.echo(f"  to get more: {step}")
    for warning in loaded.warnings:
        tell(str(warning))


_MISSING = {
    "rg": "missing: grep uses Python instead; apt-get install ripgrep is quicker",
    "bwrap": "missing: the sandbox is weaker without; apt-get install bubblewrap",
}
