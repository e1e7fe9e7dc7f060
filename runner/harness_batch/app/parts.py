"""The runs of shards that somebody wants joined: found below folders, read, and held together.

What cannot be joined is refused here: runs of other inputs, and folders that hold no run.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import field, frozen

from harness_batch.app.resume import Earlier
from harness_batch.errors import UsageError
from harness_batch.events import Event
from harness_batch.messages import JsonObject
from harness_batch.records import Run
from harness_batch.store.folder import STARTED, RunFolder
from harness_batch.store.replay import read_events

_DEEP: Final = 4
"""How far below a named folder runs are looked for: artifacts of a CI system nest."""
_MOST_LOCK_BYTES: Final = 256 << 20


@frozen
class Part:
    """One shard's run, read."""

    folder: RunFolder
    run: Run
    known: Earlier = field(eq=False)
    ended: bool
    """Whether its journal has an end; else it died."""
    last_at: str
    """When its last event happened."""
    lock: JsonObject = field(eq=False)

    @property
    def name(self) -> str:
        """For messages: the shard when it is one."""
        run = self.run
        return f"shard {run.shard_index}/{run.shard_total}" if run.shard_total else run.run_id


@frozen
class Parts:
    """What is joined, in the order of the shards, and what there is to say about it."""

    parts: tuple[Part, ...]
    missing: tuple[int, ...]
    """Shards that never began."""
    notices: tuple[str, ...]

    @property
    def dead(self) -> tuple[Part, ...]:
        """Shards whose journal has no end."""
        return tuple(part for part in self.parts if not part.ended)


def parts_of(places: Sequence[Path], out: Path) -> Parts:
    """All runs at or below the places, one for each shard. Raises: UsageError, StorageError."""
    found: dict[str, Part] = {}
    notices: list[str] = []
    for folder in _folders(places, out):
        if not folder.journal.is_file() or not folder.journal.stat().st_size:
            notices.append(f"{folder.path.name}: it began and died before its first event")
            continue
        part = _read(folder)
        known = found.get(part.run.run_id)
        if known is None or known.last_at <= part.last_at:
            found[part.run.run_id] = part
    if not found:
        raise UsageError(f"there is no run in {', '.join(map(str, places))}")
    _refuse_mixed(tuple(found.values()))
    chosen, dropped = _one_each(found.values())
    notices += [
        f"{part.name} is there twice; {part.run.run_id}, the older, is left out" for part in dropped
    ]
    here = {part.run.shard_index for part in chosen}
    total = chosen[0].run.shard_total or 0
    missing = tuple(index for index in range(1, total + 1) if index not in here)
    return Parts(chosen, missing, tuple(notices))


def _folders(places: Iterable[Path], out: Path) -> Iterator[RunFolder]:
    """Of each place the runs below it; never what an earlier merge made of them."""
    target = out.resolve()
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is no folder; name folders of runs, or one that holds them")
        runs = [path for path in _runs_below(place, _DEEP) if path.resolve() != target]
        if not runs:
            raise UsageError(f"there is no run in {place}: no folder with events.jsonl in it")
        yield from map(RunFolder, runs)


def _runs_below(place: Path, deep: int) -> Iterator[Path]:
    if (place / "events.jsonl").is_file() or (place / STARTED).is_file():
        yield place
        return
    if deep:
        for path in sorted(place.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield from _runs_below(path, deep - 1)


def _read(folder: RunFolder) -> Part:
    known = Earlier()
    last: Event | None = None
    for event in read_events(folder.journal):
        known.take(event)
        last = event
    if known.run is None or last is None:
        raise UsageError(f"{folder.journal} is no journal of a run: nothing in it starts one")
    return Part(
        folder=folder,
        run=known.run,
        known=known,
        ended=known.run.finished_at is not None,
        last_at=last.ts,
        lock=_lock(folder),
    )


def _lock(folder: RunFolder) -> JsonObject:
    """The resolved inputs; empty when the shard died before it wrote them. Raises: UsageError."""
    path = folder.lock_file
    try:
        if path.stat().st_size > _MOST_LOCK_BYTES:
            raise UsageError(f"{path} is too large for the resolved inputs of a run")
        lock = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(lock, dict) or not isinstance(lock.get("items"), list):
        raise UsageError(f"{path} does not hold the resolved inputs of a run")
    return lock


def _refuse_mixed(parts: Sequence[Part]) -> None:
    first = parts[0]
    for part in parts[1:]:
        if part.run.lock_digest != first.run.lock_digest:
            raise UsageError(
                f"{first.folder.path} and {part.folder.path} ran different inputs (lock.json "
                "tells them apart): recipes, parameters, models, base commits or the recorded "
                "durations differ; run all shards on the same commit with the same history"
            )
        if part.run.shard_total != first.run.shard_total:
            raise UsageError(
                f"{first.folder.path} is {first.name}, {part.folder.path} is {part.name}: "
                "they do not belong together"
            )


def _one_each(parts: Iterable[Part]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Of two tries of a shard the one that came to its end, else the newer one."""
    chosen: dict[int | str, Part] = {}
    dropped: list[Part] = []
    for part in sorted(parts, key=lambda part: (part.ended, part.run.started_at)):
        key = part.run.shard_index or part.run.run_id
        if key in chosen:
            dropped.append(chosen[key])
        chosen[key] = part
    ordered = sorted(chosen.values(), key=lambda part: (part.run.shard_index or 0, part.run.run_id))
    return tuple(ordered), tuple(dropped)
