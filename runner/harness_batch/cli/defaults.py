"""Defaults of `run` options out of the configuration's `run` section, for click to apply.

Precedence, highest first: command line, environment, configuration, built-in default.
"""

from pathlib import Path
from typing import Any

import click

from harness_batch.cli.options import InOrder

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
        if not {"--help", "-h"} & set(args):
            ctx.default_map = _defaults(args)
        return super().parse_args(ctx, args)


def _defaults(args: list[str]) -> dict[str, Any]:
    import os

    from harness_batch.config.door import load_config

    explicit = _value(args, "--config") or os.environ.get("HARNESS_BATCH_CONFIG")
    config = load_config(
        repo=Path.cwd(),
        explicit=Path(explicit) if explicit else None,
        environ=os.environ,
        trust_repo="--trust-repo" in args,
        use_repo="--no-repo-config" not in args,
    )
    return {NAMES.get(key, key): _as_click(key, value) for key, value in config.run.items()}


def _as_click(key: str, value: Any) -> Any:  # noqa: ANN401  # what click converts
    if NAMES.get(key, key) in LISTS:
        return [value] if isinstance(value, str) else value
    return value if isinstance(value, bool) else str(value)


def _value(args: list[str], name: str) -> str | None:
    for i, word in enumerate(args):
        if word == name and i + 1 < len(args):
            return args[i + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None
