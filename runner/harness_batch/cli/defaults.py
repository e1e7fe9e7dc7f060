"""Defaults of `run` options out of the configuration's `run` section, for click to apply.

Precedence, highest first: command line, environment, configuration, built-in default.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness_batch.app.options import ConfigSources, Inputs
from harness_batch.cli.options import InOrder, config_options

if TYPE_CHECKING:
    from harness_batch.config.record import Config

NAMES = {
    "params": "parameter_files",
    "repo": "repos",
    "limit": "limits",
    "junit_dialect": "dialect",
    "json": "as_json",
}
"""Configuration key -> name of click's parameter, where they differ."""
LISTS = ("parameter_files", "repos", "limits", "only", "allow", "deny")


class WithConfigDefaults(InOrder):
    """A command whose options have defaults in the configuration."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the configuration that the arguments name, then parse as ever."""
        ctx.meta["argv"] = tuple(args)
        if not {"--help", "-h"} & set(args):
            from harness_batch.app.configuration import read_config

            sources = _sources(args)
            config = read_config(sources)
            ctx.meta["config"] = sources, config
            given = config.run.items()
            ctx.default_map = {NAMES.get(key, key): _as_click(key, value) for key, value in given}
        return super().parse_args(ctx, args)


def config_of(ctx: click.Context, inputs: Inputs) -> "Config":
    """What the defaults came from; read again when such a default changed what is to be read."""
    sources, config = ctx.meta["config"]
    if sources == inputs.config_sources:
        known: Config = config
        return known
    from harness_batch.app.configuration import read_config

    return read_config(inputs.config_sources)


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@config_options
def _early() -> None:
    """Those options alone, which must be known before there are defaults for the others."""


def _sources(args: list[str]) -> ConfigSources:
    given = _early.make_context("run", [*args]).params
    return ConfigSources(
        cwd=Path.cwd(),
        environ=dict(os.environ),
        explicit=given["config"],
        trust_repo=given["trust_repo"],
        repo_config=given["repo_config"],
    )


def _as_click(key: str, value: Any) -> Any:  # noqa: ANN401  # what click converts
    if NAMES.get(key, key) in LISTS:
        return [value] if isinstance(value, str) else value
    return value if isinstance(value, bool) else str(value)
