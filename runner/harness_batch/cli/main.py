"""The entry point: finds the command, maps errors to exit codes. Imports click and no more."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from harness_batch import __version__

if TYPE_CHECKING:
    from harness_batch.errors import HarnessError

COMMANDS = {
    "run": "runs the sessions, writes database, reports and patches",
    "validate": "all faults of recipes at once, without calling anything",
    "plan": "the sessions that `run` would start",
    "report": "re-emits the reports of a run",
    "runs": "lists runs",
    "show": "the transcript of a session",
    "query": "read-only SQL over the history",
    "schema": "the JSON Schemas of recipe, config and result",
    "apply": "applies a session's patch to the current checkout",
    "doctor": "what this host can enforce, and what is missing",
    "init": "a starter recipe, or the sample repository",
}
"""Every command with its line of help; each is a module of its own, loaded when it is called."""


class Commands(click.Group):
    """`harness-batch RECIPE...` is `harness-batch run RECIPE...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` in front of what does not begin with a command."""
        if args and args[0] not in COMMANDS and args[0] not in ("--help", "-h", "--version"):
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; what goes wrong on purpose is one message and an exit code."""
        # Loaded only now: `--version` and `--help` must not pay for it.
        from harness_batch.errors import HarnessError

        try:
            return super().invoke(ctx)
        except HarnessError as error:
            text = str(error)
            click.echo(text if "\n" in text else f"harness-batch: {text}", err=True)
            ctx.exit(_code(error))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command's module."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"harness_batch.cli.{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="harness-batch")
def entry() -> None:
    """Run LLM coding-agent sessions from recipe files, headless, with declared permissions.

    `harness-batch RECIPE...` is `harness-batch run RECIPE...`.
    """


def main() -> NoReturn:
    """Run the command line and exit with the contract's code."""
    try:
        code = entry.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except click.Abort:
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _code(error: "HarnessError") -> int:
    from harness_batch.errors import PatchConflict, UserError

    match error:
        case UserError():
            return 2
        case PatchConflict():
            return 1
        case _:
            return 3
