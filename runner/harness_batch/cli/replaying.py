"""What `replay` does once its options are read: session after session, told as they end."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import trio

from harness_batch.app.configuration import read_config
from harness_batch.app.divergence import as_text
from harness_batch.app.options import Inputs
from harness_batch.app.own_secrets import guarded
from harness_batch.app.recordings import Lookup, Source, save, source_of
from harness_batch.app.replaying import Replay, Replayed, Wishes, place_for
from harness_batch.cli.bugs import KeptIn
from harness_batch.cli.options import limits_of
from harness_batch.cli.progress import watcher
from harness_batch.cli.streams import mask_streams, tell
from harness_batch.errors import UsageError
from harness_batch.store.masking import Mask
from harness_batch_reports.hostile import inert, one_line

EXIT_CODES = {"same": 0, "differs": 1, "errored": 3}


def replay(inputs: Inputs, values: Mapping[str, Any], argv: tuple[str, ...]) -> int:
    """Replay all that is named; the exit code, the gravest of all. Raises: HarnessError."""
    inputs, config = guarded(inputs, read_config(inputs.config_sources))
    mask = Mask(config.secrets)
    mask_streams(mask.in_bytes)
    lookup = Lookup(run=values["run_word"], db=values["db"], cwd=inputs.cwd, config=config)
    words: tuple[str, ...] = values["words"]
    if len(words) > 1 and (values["save"] or values["out"]):
        raise UsageError("--save and --out take one SESSION")
    sources = [source_of(word, lookup) for word in words]
    if values["save"] is not None:
        save(sources[0], sources[0].recording, inputs.cwd / values["save"], mask)
        return 0
    wishes = Wishes(
        repo=values["repo"],
        ref=values["ref"],
        recipe=_at(inputs.cwd, values["recipe"]),
        out=_at(inputs.cwd, values["out"]),
        sandbox=values["sandbox"],
        limits=limits_of,
        argv=argv,
    )
    code = 0
    for source in sources:
        place = place_for(inputs.cwd)
        one = Replay(
            source=source, inputs=inputs, config=config, wishes=wishes, place=place, mask=mask
        )
        ended = _replayed(one, update=values["update"])
        if ended in (130, 143):
            return ended
        code = max(code, ended)
    return code


def _replayed(one: Replay, *, update: bool) -> int:
    """One session; what the replay left stays where something is to be looked at."""
    with ExitStack() as leaving:
        leaving.callback(one.clear)
        prepared = one.prepared()
        with KeptIn(one.place, one.mask):
            ended = trio.run(one.run, prepared, watcher("none", 1, events_on_stdout=False))
        if ended.outcome == "interrupted":
            return ended.exit_code
        accepted = update and ended.outcome == "differs"
        if accepted:
            one.accept()
        _print(one.source, ended, updated=accepted)
        code = 0 if accepted else EXIT_CODES[ended.outcome]
        if code:
            leaving.pop_all()
        return code


def _print(source: Source, ended: Replayed, *, updated: bool) -> None:
    name = one_line(source.name, 200)
    if ended.differences:
        click.echo(inert(as_text(ended.differences)))
    match ended.outcome:
        case "same":
            click.echo(f"{name}: as recorded ({one_line(ended.words, 200)})")
        case "differs" if updated:
            click.echo(f"{name}: differs; accepted as {source.accepted}")
        case "differs":
            click.echo(f"{name}: differs ({one_line(ended.words, 200)}); --update accepts it")
            tell(f"harness-batch: what the replay left is in {ended.folder}")
        case _:
            click.echo(f"{name}: could not be replayed: {one_line(ended.words, 400)}")
            tell(f"harness-batch: what the replay left is in {ended.folder}")


def _at(cwd: Path, path: Path | None) -> Path | None:
    return None if path is None else cwd / path
