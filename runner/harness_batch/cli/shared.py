"""What every command has, be it told so or not: `--config FILE`. Imports click and no more."""

from copy import copy
from pathlib import Path

import click


def with_config(command: click.Command) -> click.Command:
    """The command, and those below it, with `--config FILE` where they had none of their own.

    A command that asks nothing of the configuration still refuses a file that is none.
    """
    if isinstance(command, click.Group):
        group = copy(command)
        group.commands = {name: with_config(below) for name, below in command.commands.items()}
        return group
    if any("--config" in parameter.opts for parameter in command.params):
        return command
    more = copy(command)
    more.params = [*command.params, _option()]
    return more


def _option() -> click.Option:
    return click.Option(
        ["--config"],
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="One more configuration file; wins over the others.",
        expose_value=False,
        callback=_checked,
    )


def _checked(ctx: click.Context, option: click.Parameter, file: Path | None) -> Path | None:
    del ctx, option
    if file is not None:
        import os

        from harness_batch.config.door import load_config

        load_config(repo=None, explicit=file, environ=os.environ)
    return file
