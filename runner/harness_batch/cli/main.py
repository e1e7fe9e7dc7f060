"""The entry point: finds the command, maps errors to exit codes. Imports click, nothing heavy."""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import click

from harness_batch import __version__
from harness_batch.cli.shared import with_config
from harness_batch.cli.streams import code_of, open_streams, tell

COMMANDS = {
    "run": "run the sessions of recipes; write database, reports and patches",
    "validate": "list all faults of recipes at once; nothing is called",
    "plan": "show the sessions that `run` would start; nothing is called",
    "report": "write the reports of a run again",
    "runs": "list the runs, newest first",
    "show": "show the transcript of a session",
    "merge": "join the runs of shards into one, with one report",
    "query": "answer SQL from the history, read-only",
    "stats": "answer named questions from the history, with charts",
    "compare": "compare a run with a baseline; a gate when told what must hold",
    "export": "write runs as Parquet, or send them as OpenTelemetry traces",
    "import": "bring transcripts of other agents into the history",
    "permissions": "tell which rules decided what, suggest rules, try others, explain one call",
    "schema": "print the JSON Schema of recipe, config, agent or result",
    "replay": "run a recorded session again without a model; tell what differs",
    "apply": "apply a session's patch to a checkout",
    "auth": "store, show and remove the credentials of providers",
    "github": "run, comment and propose in jobs of GitHub Actions",
    "models": "list models with their limits, abilities and prices",
    "doctor": "say what this host can enforce, and what is missing",
    "init": "write a starter recipe, or make the sample repository",
}
"""Every command with its line of help; each is a module of its own, loaded when it is called."""


FIRST_STEPS = """\b
First steps, without a key and without network:
  harness-batch init --sample sample
  harness-batch run fix-failing-test --repo sample
"""


class Commands(click.Group):
    """`harness-batch RECIPE...` is `harness-batch run RECIPE...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` in front of what does not begin with a command."""
        if args and args[0] not in COMMANDS and args[0] not in ("--help", "-h", "--version"):
            _refuse_misspelt(args[0])
            args = ["run", *args]
        return super().parse_args(ctx, args)

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
        return with_config(command) if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    epilog=FIRST_STEPS,
)
@click.version_option(__version__, prog_name="harness-batch")
def entry() -> None:
    """Run LLM coding-agent sessions from recipe files, headless, with declared permissions.

    `harness-batch RECIPE...` is `harness-batch run RECIPE...`.
    """


def main() -> NoReturn:
    """Run the command line and exit with the contract's code."""
    if os.getpid() == 1:
        from harness_batch.cli.first_process import stand_by

        stand_by()
    gc.disable()  # imports make a lot that stays; `running` turns it on again for what lasts
    outlet = open_streams()
    sys.exit(code_of(outlet, call()))


def call(words: list[str] | None = None) -> int:
    """Carry out a command line (None: the process's own); the exit code, all else is told."""
    try:
        code = entry.main(words, prog_name="harness-batch", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except click.Abort:
        code = 130
    except Exception as error:  # noqa: BLE001  # the edge: what nobody expected is told in one line
        code = _failed(error)
    return code if isinstance(code, int) else 0


def _refuse_misspelt(word: str) -> None:
    """`harness-batch rnu ...` is no recipe called `rnu`."""
    if word.startswith("-") or not word.isalpha() or Path(word).exists():
        return
    from harness_batch.recipe.places import bundled_recipes
    from harness_batch.words import nearest

    near = nearest(word, COMMANDS)
    if near and word not in bundled_recipes():
        raise click.UsageError(f"no command or recipe `{word}`{near}")


def _failed(error: Exception) -> int:
    # Loaded only now: the good path of `--version` must not pay for it.
    from harness_batch.errors import HarnessError, PatchConflict, UserError, cause_of

    cause = cause_of(error)
    match cause:
        case UserError():
            code = 2
        case PatchConflict():
            code = 1
        case HarnessError():
            code = 3
        case _:
            from harness_batch.cli.bugs import told

            tell(told(error))
            return 3
    tell(f"harness-batch: {cause}" if "\n" not in str(cause) else str(cause))
    return code
