"""One run out of the runs of its shards: journal, database, items, reports, history.

The inputs are only read. A merge that is made again, with the same inputs, gives the same files.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from harness_batch.app.finish import Copies, into_history, reported, write_reports
from harness_batch.app.joining import joined, merged_id, troubles
from harness_batch.app.parts import Part, Parts, parts_of
from harness_batch.codec import encode
from harness_batch.errors import StorageError, UsageError
from harness_batch.store.disk import new_file, write_all, write_bytes
from harness_batch.store.folder import RunFolder
from harness_batch_reports.hostile import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_batch_reports.records import BatchReport

_CHUNK_EVENTS = 1_000
_DEEPEST = 8
"""Folders below an item's: attempts, children and their outputs need five."""


@frozen(kw_only=True)
class Merged:
    """A merge that is done."""

    folder: RunFolder
    report: "BatchReport"
    written: "Mapping[str, Path]"
    troubles: tuple[str, ...]
    """What is missing or went wrong, in words."""
    complete: bool
    """Whether every shard came to its end."""


def merge_runs(out: Path, places: Sequence[Path], history: Path, copies: Copies) -> Merged:
    """Join the runs at or below the places into the folder `out`. Blocks.

    Raises: UsageError for runs that do not belong together, or when `out` holds another run;
    StorageError.
    """
    found = parts_of(places, out)
    folder = RunFolder(out)
    _refuse_other(folder, merged_id(found.parts))
    with folder.claimed():
        folder.mark_started()
        _copy_items(found.parts, folder)
        if found.lock is not None:
            write_bytes(folder.lock_file, found.lock.data)
        _write_journal(found, folder)
        folder.database.unlink(missing_ok=True)
        report = reported(folder)
        trouble = into_history(folder, history)
        written = write_reports(folder, report, copies)
        folder.mark_finished()
    told = [one_line(text, 600) for text in troubles(found)]
    return Merged(
        folder=folder,
        report=report,
        written=written,
        troubles=(*told, *((trouble,) if trouble else ())),
        complete=not found.missing and not found.dead,
    )


def _refuse_other(folder: RunFolder, run_id: str) -> None:
    holds = folder.run_id()
    if holds is not None and holds != run_id:
        raise UsageError(
            f"{folder.path} holds {holds}, which is not the run that these shards make; "
            "name an empty folder for OUT"
        )


def _copy_items(parts: Sequence[Part], folder: RunFolder) -> None:
    """Patches, answers, transcripts and outputs of the sessions of each shard."""
    for part in parts:
        mine = {session.folder for session in part.known.sessions.values() if session.folder}
        for name in sorted(mine):
            source = part.folder.path / "items" / name
            if not (source.parent.is_symlink() or source.is_symlink()) and source.is_dir():
                try:
                    _copy_plain(source, folder.path / "items" / name, _DEEPEST)
                except OSError as error:
                    raise StorageError(f"cannot copy {source}: {error}") from error


def _copy_plain(source: Path, target: Path, deep: int) -> None:
    """Plain files and folders; a link, a pipe or a device of another machine stays there."""
    target.mkdir(parents=True, exist_ok=True)
    with os.scandir(source) as entries:
        for entry in entries:
            place = target / entry.name
            if entry.is_file(follow_symlinks=False):
                if place.is_symlink():
                    place.unlink()
                shutil.copyfile(entry.path, place, follow_symlinks=False)
            elif entry.is_dir(follow_symlinks=False) and deep:
                _copy_plain(Path(entry.path), place, deep - 1)


def _write_journal(found: Parts, folder: RunFolder) -> None:
    with new_file(folder.journal) as descriptor:
        lines: list[bytes] = []
        for event in joined(found):
            lines.append(encode(event) + b"\n")
            if len(lines) >= _CHUNK_EVENTS:
                write_all(descriptor, b"".join(lines))
                lines = []
        write_all(descriptor, b"".join(lines))
        os.fsync(descriptor)
