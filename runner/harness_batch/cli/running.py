"""What `run` does once its options are read: prepare, execute with progress, print the result."""

import gc
import os
import shutil
import sys
from functools import partial
from pathlib import Path

import click
import trio

from harness_batch.app.containment import Look
from harness_batch.app.options import Inputs, RunOptions
from harness_batch.app.own_secrets import guarded
from harness_batch.app.places import history_of, run_folder
from harness_batch.app.prepare import prepare
from harness_batch.app.prices import require_prices
from harness_batch.app.run import Finished, execute
from harness_batch.app.sharding import share
from harness_batch.cli.bugs import KeptIn
from harness_batch.cli.progress import event_file, watcher
from harness_batch.cli.streams import mask_streams, tell
from harness_batch.config.record import Config
from harness_batch.plan.shards import shard_of
from harness_batch.store.journal import Follower
from harness_batch.store.masking import Mask


def run(
    inputs: Inputs, config: Config, options: RunOptions, *, progress: str, as_json: bool
) -> int:
    """Run it all; the exit code. Raises: HarnessError, maybe in a group."""
    inputs, config = guarded(inputs, config)
    mask = Mask(config.secrets)
    mask_streams(mask.in_bytes)
    look = Look(inputs.environ, options.sandbox)  # takes its time beside what follows
    prepared = prepare(inputs, config)
    require_prices(prepared, options)
    history = history_of(options.db, inputs.cwd)
    if options.shard is not None:
        found = shard_of(options.shard, inputs.environ)
        prepared, options = share(prepared, options, found.shard, history)
        tell(f"harness-batch: {found.words}: {len(prepared.plan.items)} of the items")
    folder, notice = run_folder(options, inputs.cwd)
    if notice is not None:
        tell(f"harness-batch: {notice}")
    if not prepared.plan.items:
        tell("harness-batch: the plan is empty: no item to run")
    on_stdout = str(options.events) == "-"
    work = partial(
        execute,
        prepared,
        inputs,
        options,
        look=look,
        folder=folder,
        history=history,
        mask=mask,
        watch=watcher(progress, len(prepared.plan.items), events_on_stdout=on_stdout),
        followers=_copies(options, inputs.cwd),
    )
    gc.freeze()  # what the imports left is here to stay: no collection needs to look at it
    gc.enable()
    with KeptIn(folder.path, mask):
        finished = trio.run(work)
    _print(finished, options, as_json=as_json)
    return finished.exit_code


def _copies(options: RunOptions, cwd: Path) -> tuple[Follower, ...]:
    """Who gets every event beside the journal: the file of `--events`. Raises: UsageError."""
    if options.events is None or str(options.events) == "-":
        return ()
    return (event_file(options.events, cwd),)


def _print(finished: Finished, options: RunOptions, *, as_json: bool) -> None:
    for text in finished.trouble:
        tell(f"harness-batch: {text}")
    if str(options.events) == "-":
        return
    from harness_batch_reports import console, result_json
    from harness_batch_reports.console import COLOURED, PLAIN, Screen

    if as_json:
        click.echo(result_json.as_text(result_json.result(finished.report)), nl=False)
        return
    layout = Screen(
        width=shutil.get_terminal_size((100, 24)).columns,
        palette=COLOURED if coloured(sys.stdout.isatty()) else PLAIN,
        near=Path.cwd(),
    )
    click.echo(console.screen(finished.report, layout, finished.written), nl=False)


def coloured(terminal: bool) -> bool:
    """Colour only on a terminal, and never with NO_COLOR."""
    return terminal and not os.environ.get("NO_COLOR")
