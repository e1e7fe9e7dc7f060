"""`harness-batch doctor`: what this host can do for a run, and what is missing."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness_batch import __version__
from harness_batch.cli.streams import tell

if TYPE_CHECKING:
    from harness_batch.sandbox.host import Host


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
    from harness_batch.app.credentials import credential_states
    from harness_batch.config.door import load_config
    from harness_batch.processes import own_program
    from harness_batch.sandbox.host import mends

    host = trio.run(examined, os.environ)
    steps = tuple(mends(host))
    loaded = load_config(repo=Path.cwd(), explicit=config, environ=os.environ)
    programs = {name: own_program(name) for name in ("git", "bash", "rg", "bwrap")}
    providers = {state.provider: state.told for state in credential_states(loaded)}
    if as_json:
        facts = {
            "version": __version__,
            "python": sys.version.split()[0],
            "programs": programs,
            "providers": providers,
            "config_files": [str(file) for file in loaded.files],
            **_sandbox_facts(host, steps),
        }
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"harness-batch {__version__}, Python {sys.version.split()[0]}")
    for name, path in programs.items():
        click.echo(f"  {name:<20} {path or _MISSING.get(name, 'missing')}")
    click.echo("providers")
    for name, state in providers.items():
        click.echo(f"  {name:<20} {state}")
    _tell_sandbox(host, steps)
    for warning in loaded.warnings:
        tell(str(warning))


_MISSING = {
    "rg": "missing: grep uses Python instead; apt-get install ripgrep is quicker",
    "bwrap": "missing: the sandbox is weaker without; apt-get install bubblewrap",
}


def _sandbox_facts(host: "Host", steps: tuple[str, ...]) -> dict[str, object]:
    from harness_batch.sandbox.bounds import in_force
    from harness_batch.sandbox.policy import Limits

    properties = host.properties.items()
    return {
        "sandbox": {name: {"holds": p.holds, "why": p.why} for name, p in properties},
        "sandbox_mechanism": host.mechanism,
        "sandbox_passed_over": dict(host.passed_over),
        "sandbox_bounds": {
            name: {"most": bound.most, "by": bound.by} for name, bound in in_force(Limits()).items()
        },
        "sandbox_mends": steps,
    }


def _tell_sandbox(host: "Host", steps: tuple[str, ...]) -> None:
    from harness_batch.sandbox.bounds import in_force
    from harness_batch.sandbox.policy import Limits

    click.echo(f"sandbox: what holds for every program that an agent runs ({host.mechanism})")
    for name, prop in host.properties.items():
        click.echo(f"  {name:<20} {'yes' if prop.holds else f'no: {prop.why}'}")
    for name, bound in in_force(Limits()).items():
        click.echo(f"  {name:<20} {bound.told(name)}")
    for mechanism, why in host.passed_over.items():
        click.echo(f"  not by {mechanism}: {why}")
    for step in steps:
        click.echo(f"  to get more: {step}")
