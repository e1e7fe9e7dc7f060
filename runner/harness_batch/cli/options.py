"""Options that several commands share, and words of the command line turned into records."""

import os
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from attrs import fields

from harness_batch.app.options import ConfigSources, Inputs
from harness_batch.errors import UsageError
from harness_batch.limits import Limits, duration_seconds

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """What click's options are."""

    def __call__(self, function: Function, /) -> Function:
        """The function with the option noted on it."""
        ...


Rules = tuple[tuple[str, str], ...]
LIMITS = ", ".join(field.name for field in fields(Limits))


def environment_name(option: str) -> str:
    """The environment variable of an option: `--max-cost` -> `HARNESS_BATCH_MAX_COST`."""
    return f"HARNESS_BATCH_{option.removeprefix('--').replace('-', '_').upper()}"


def option(*names: str, **settings: Any) -> Decorator:  # noqa: ANN401
    """A click option that also reads its environment variable."""
    long = next(name for name in names if name.startswith("--"))
    return click.option(*names, envvar=environment_name(long.partition("/")[0]), **settings)


class InOrder(click.Command):
    """A command that knows in which order `--allow` and `--deny` were given: the later wins.

    click hands over the values option by option, so the order is read off the arguments. Rules of
    the environment come first: the command line wins.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the rules, then parse as ever."""
        words = list(args)
        given: list[tuple[str, str]] = []
        for i, word in enumerate(words):
            for action in ("allow", "deny"):
                if word == f"--{action}" and i + 1 < len(words):
                    given.append((action, words[i + 1]))
                elif word.startswith(f"--{action}="):
                    given.append((action, word.partition("=")[2]))
        ctx.meta["rules"] = given
        return super().parse_args(ctx, args)


def rules_of(ctx: click.Context, values: Mapping[str, Any]) -> Rules:
    """All rules of environment and command line, in order."""
    given: list[tuple[str, str]] = ctx.meta["rules"]
    words = [(action, text) for action in ("allow", "deny") for text in values[action]]
    return (*(rule for rule in words if rule not in given), *given)


def input_options(command: Function) -> Function:
    """RECIPE... and the options that decide what is planned."""
    decorators = (
        click.argument("recipes", nargs=-1, required=True, metavar="RECIPE..."),
        option(
            "-p",
            "parameters",
            "--param",
            multiple=True,
            metavar="KEY=VALUE",
            help="A parameter of the recipe; repeatable.",
        ),
        option(
            "--params",
            "parameter_files",
            multiple=True,
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Parameters from a YAML or JSON object.",
        ),
        option(
            "-m", "--model", metavar="PROVIDER/MODEL", help="The model, whatever the recipe says."
        ),
        option("--agent", metavar="NAME", help="build, plan, explore, review, or one of your own."),
        option(
            "--repo",
            "repos",
            multiple=True,
            metavar="PATH|@FILE",
            help="The repository to work on; repeatable; @FILE holds one a line.",
        ),
        option("--ref", metavar="REF", help="The commit to start from, whatever the recipe says."),
        option(
            "--limit",
            "limits",
            multiple=True,
            metavar="KEY=VALUE",
            help=f"{LIMITS}.",
        ),
        option("--only", multiple=True, metavar="GLOB", help="Only items whose key matches."),
        option(
            "--allow",
            multiple=True,
            metavar="PERM[:PATTERN]",
            help="A permission rule, after all others.",
        ),
        option(
            "--deny",
            multiple=True,
            metavar="PERM[:PATTERN]",
            help="A permission rule, after all others.",
        ),
        config_options,
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def config_options(command: Function) -> Function:
    """The options that decide which configuration is read."""
    decorators = (
        option(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="One more configuration file; wins over the others.",
        ),
        option(
            "--trust-repo",
            is_flag=True,
            help="Take the repository's harness.jsonc, agents, skills and commands like yours.",
        ),
        option(
            "--no-repo-config",
            "repo_config",
            flag_value=False,
            default=True,
            type=bool,
            help="Leave the repository's harness.jsonc, agents, skills and commands out.",
        ),
    )
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def sources_of(config: Path | None, trust_repo: bool, repo_config: bool) -> ConfigSources:
    """The record of `config_options`."""
    return ConfigSources(
        cwd=Path.cwd(),
        environ=dict(os.environ),
        explicit=config,
        trust_repo=trust_repo,
        repo_config=repo_config,
    )


def inputs_of(values: Mapping[str, Any], rules: Rules) -> Inputs:
    """The record of `input_options`. Raises: UsageError."""
    return Inputs(
        recipes=values["recipes"],
        cwd=Path.cwd(),
        environ=dict(os.environ),
        parameters=dict(pair("-p", text) for text in values["parameters"]),
        parameter_files=values["parameter_files"],
        model=values["model"],
        agent=values["agent"],
        limits=limits_of(values["limits"]),
        repos=values["repos"],
        ref=values["ref"],
        rules=rules,
        only=values["only"],
        db=values.get("db") or _path_of(os.environ.get(environment_name("--db"))),
        config=values["config"],
        trust_repo=values["trust_repo"],
        repo_config=values["repo_config"],
    )


def _path_of(text: str | None) -> Path | None:
    return Path(text) if text else None


def limits_of(texts: tuple[str, ...]) -> Limits:
    """`--limit KEY=VALUE ...` as a record; of two for one key the lower. Raises: UsageError."""
    limits = Limits()
    for text in texts:
        key, value = pair("--limit", text)
        declared: dict[str, Any] = {key: _limit_value(key, value)}
        limits = limits.lowest(Limits(**declared))
    return limits


def _limit_value(key: str, value: str) -> int | float | Decimal:
    try:
        match key:
            case "steps" | "tool_calls" | "tokens" | "output_tokens":
                number: int | float | Decimal = _whole(value)
            case "cost_usd":
                number = money(value)
            case "seconds" | "working_seconds":
                number = duration_seconds(value)
            case _:
                raise UsageError(f"--limit {key}: unknown; the limits are {LIMITS}")
    except ValueError as error:
        raise UsageError(f"--limit {key}={value}: {error}") from error
    if number < 0:
        raise UsageError(f"--limit {key}={value}: it cannot be negative")
    return number


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def money(text: str) -> Decimal:
    """US dollars. Raises: ValueError."""
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not an amount of US dollars, e.g. 2.50") from None
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{text!r} is not an amount of US dollars, e.g. 2.50")
    return amount


def pair(option_name: str, text: str) -> tuple[str, str]:
    """`KEY=VALUE` in two. Raises: UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{option_name} {text}: write KEY=VALUE")
    return key, value
