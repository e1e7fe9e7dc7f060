"""`harness-batch auth`: keys into `auth.json` and out of it, and who has one. No key is printed.

Nothing is ever asked on a terminal: a key comes out of a file or a pipe, the one of `copilot` by
a code that is entered in a browser.
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness_batch.cli.options import config_options
from harness_batch.cli.streams import tell
from harness_batch.errors import UsageError

if TYPE_CHECKING:
    from harness_batch.config.record import Config, ProviderSettings
    from harness_batch.models.github import DeviceCode


@click.group()
def command() -> None:
    """Store, show and remove the credentials of providers."""


@command.command()
@click.argument("provider")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    metavar="FILE|-",
    help="Where the key is read from; - is a pipe on stdin.",
)
@config_options
def login(
    provider: str, key_file: Path | None, config: Path | None, trust_repo: bool, repo_config: bool
) -> None:
    """Store a key for PROVIDER in auth.json; for copilot, log in at GitHub."""
    from harness_batch.app.credentials import known_provider, store

    loaded = _config(config, trust_repo, repo_config)
    settings = known_provider(provider, loaded)
    key = _read_key(key_file) if key_file is not None else _logged_in(settings)
    file = store(provider, key, os.environ)
    click.echo(f"stored the key of {provider} in {file}")
    variable = settings.key_origin.variable
    if variable and os.environ.get(variable):
        tell(f"harness-batch: {variable} is set and goes before it")


@command.command()
@click.argument("provider", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@config_options
def status(
    provider: str | None,
    as_json: bool,
    config: Path | None,
    trust_repo: bool,
    repo_config: bool,
) -> None:
    """Show which providers have a credential, and from where; with PROVIDER, exit 1 if it lacks."""
    from harness_batch.app.credentials import credential_states

    loaded = _config(config, trust_repo, repo_config)
    states = credential_states(loaded)
    if provider is not None:
        states = tuple(state for state in states if state.provider == provider)
        if not states:
            raise UsageError(f"unknown provider `{provider}`")
    if as_json:
        facts = {
            state.provider: {"type": state.type, "ready": state.ready, "source": state.source}
            for state in states
        }
        click.echo(json.dumps(facts, indent=2))
    else:
        for state in states:
            click.echo(f"{state.provider:<20} {state.told}")
    if provider is not None and not states[0].ready:
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("provider")
def logout(provider: str) -> None:
    """Remove the key of PROVIDER from auth.json."""
    from harness_batch.app.credentials import auth_file, drop

    file = drop(provider, os.environ)
    if file is None:
        click.echo(f"{auth_file(os.environ)} holds no key of {provider}")
    else:
        click.echo(f"removed the key of {provider} from {file}")


def _config(explicit: Path | None, trust_repo: bool, repo_config: bool) -> "Config":
    from harness_batch.app.configuration import read_config
    from harness_batch.app.options import ConfigSources

    return read_config(
        ConfigSources(
            cwd=Path.cwd(),
            environ=dict(os.environ),
            explicit=explicit,
            trust_repo=trust_repo,
            repo_config=repo_config,
        )
    )


def _read_key(file: Path) -> str:
    from harness_batch.app.credentials import MOST_KEY_BYTES, key_of

    if str(file) == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("--key-file -: stdin is a terminal; pipe the key in, or name a file")
        return key_of(sys.stdin.buffer.read(MOST_KEY_BYTES + 1), "stdin")
    try:
        with file.open("rb") as stream:
            return key_of(stream.read(MOST_KEY_BYTES + 1), str(file))
    except OSError as error:
        raise UsageError(f"--key-file {file}: {error.strerror}") from None


def _logged_in(settings: "ProviderSettings") -> str:
    if settings.type != "copilot":
        how = f"harness-batch auth login {settings.name} --key-file FILE (or - for a pipe)"
        raise UsageError(f"where is the key? Say {how}")
    import trio

    from harness_batch.models.device_login import device_login

    return trio.run(device_login, settings, _show)


def _show(code: "DeviceCode") -> None:
    tell(f"open {code.address} and enter the code {code.user_code}")
