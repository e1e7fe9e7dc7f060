"""The runs of shards that somebody wants joined: found below folders, read, and held together.

What cannot be joined is refused here: runs of other inputs, and folders that hold no run.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from attrs import field, frozen

from harness_batch.app.lock_file import Locked, read_lock
from harness_batch.app.resume import Earlier
from harness_batch.errors import UsageError
from harness_batch.events import Event, SessionCreated, SessionUpdated
from harness_batch.plan.shards import Shard
from harness_batch.records import Run
from harness_batch.store.folder import STARTED, RunFolder
from harness_batch.store.replay import read_events

_DEEP: Final = 4
"""How far below a named folder runs are looked for: artifacts of a CI system nest."""


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
    lock: Locked | None = field(eq=False)
    """Of the first that has one, and so of all: their digests are the same."""

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
    _refuse_twice(chosen)
    notices += [
        f"{part.name} is there twice; {part.run.run_id}, the older, is left out" for part in dropped
    ]
    here = {part.run.shard_index for part in chosen}
    total = chosen[0].run.shard_total or 0
    missing = tuple(index for index in range(1, total + 1) if index not in here)
    locks = (read_lock(part.folder.lock_file) for part in chosen)
    lock = next((lock for lock in locks if lock is not None), None)
    return Parts(chosen, missing, tuple(notices), lock)


def _folders(places: Iterable[Path], out: Path) -> Iterator[RunFolder]:
    """Of each place the runs below it; never what an earlier merge made of them."""
    target = out.resolve()
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is no folder; name folders of runs, or one that holds them")
        try:
            runs = list(_runs_below(place, target, _DEEP))
        except OSError as error:
            raise UsageError(f"cannot look into {place}: {error}") from error
        if not runs:
            raise UsageError(
                f"there is no run in {place} (but for OUT itself): no folder with events.jsonl"
            )
        yield from map(RunFolder, runs)


def _runs_below(place: Path, target: Path, deep: int) -> Iterator[Path]:
    """`target` is no run, but runs may lie below it: shards beside what they are joined to."""
    is_run = (place / "events.jsonl").is_file() or (place / STARTED).is_file()
    if is_run and place.resolve() != target:
        yield place
        return
    if deep:
        for path in sorted(place.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield from _runs_below(path, target, deep - 1)


def _read(folder: RunFolder) -> Part:
    """Raises: UsageError for a journal that no run of ours writes; StorageError."""
    known = Earlier()
    last: Event | None = None
    for event in read_events(folder.journal):
        match event.payload:
            case SessionCreated(session=session) | SessionUpdated(session=session):
                _refuse_place(folder, session.folder)
            case _:
                pass
        known.take(event)
        last = event
    if known.run is None or last is None:
        raise UsageError(f"{folder.journal} is no journal of a run: nothing in it starts one")
    run = known.run
    _refuse_odd(folder, run, last.ts)
    return Part(folder, run, known, run.finished_at is not None, last.ts)


def _refuse_place(folder: RunFolder, name: str | None) -> None:
    if name is not None and (name in ("", ".", "..") or "/" in name or "\0" in name):
        raise UsageError(f"{folder.journal}: {name!r} is not the name of an item's folder")


def _refuse_odd(folder: RunFolder, run: Run, last_at: str) -> None:
    """Times and shards that there cannot be."""
    try:
        for time in (run.started_at, run.finished_at or last_at, last_at):
            _refuse_age(time)
        if (run.shard_index, run.shard_total) != (None, None):
            Shard(run.shard_index or 0, run.shard_total or 0)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{folder.journal} is no journal of a run: {error}") from error


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


def _refuse_age(time: str) -> None:
    if datetime.fromisoformat(time).timestamp() < 0:
        raise ValueError(f"{time} is before the first computers")


def _refuse_twice(parts: Sequence[Part]) -> None:
    owners: dict[str, Part] = {}
    for part in parts:
        for key in part.known.sessions:
            other = owners.setdefault(key, part)
            if other is not part:
                raise UsageError(
                    f"{other.folder.path} and {part.folder.path} both ran the item {key}; "
                    "what is joined are the shards of one run"
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
