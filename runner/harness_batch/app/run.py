"""One run from its first event to its reports: the door that the command line calls."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from harness_batch.app.containment import Look
from harness_batch.app.execution import Execution, Watch
from harness_batch.app.interrupts import Interrupts, received
from harness_batch.app.options import Inputs, RunOptions
from harness_batch.app.prepare import Prepared
from harness_batch.errors import HarnessError, StorageError
from harness_batch.store.folder import RunFolder
from harness_batch.store.journal import Follower
from harness_batch.store.masking import Mask

if TYPE_CHECKING:
    from harness_batch_reports.records import BatchReport

HISTORY_WAIT_S = 30.0
"""How long a merge by another run is waited for."""
HURRIED_WAIT_S = 1.0
"""The same after a signal."""


@frozen(kw_only=True)
class Finished:
    """A run that is over and reported."""

    exit_code: int
    report: "BatchReport"
    written: Mapping[str, Path]
    trouble: tuple[str, ...] = ()
    """What went wrong after the sessions, in words."""


@frozen(kw_only=True)
class Ending:
    """What is still to do when the sessions are over."""

    inputs: Inputs
    options: RunOptions
    folder: RunFolder
    history: Path | None
    """None: the run stays out of any."""

    def report(self, code: int, *, wait_seconds: float = HISTORY_WAIT_S) -> Finished:
        """Database, history, reports. Blocks. Raises: StorageError."""
        # What reports need is loaded when there is something to report: the first request waits
        # for nothing that it does not need.
        from harness_batch.app.finish import (
            Copies,
            into_history,
            reported,
            write_reports,
            write_transcripts,
        )
        from harness_batch.app.telemetry import after_run

        options, cwd = self.options, self.inputs.cwd
        report = write_transcripts(self.folder, reported(self.folder))
        trouble = None
        if self.history is not None:
            trouble = into_history(self.folder, self.history, wait_seconds=wait_seconds)
        copies = Copies(
            dialect=options.dialect,
            junit=_at(cwd, options.junit),
            summary=_at(cwd, options.summary),
            html=_at(cwd, options.html),
            sarif=_at(cwd, options.sarif),
            project=cwd,
        )
        written = write_reports(self.folder, report, copies)
        untraced = after_run(self.folder.database, self.inputs.environ)
        return Finished(
            exit_code=code,
            report=report,
            written=written,
            trouble=tuple(told for told in (trouble, untraced) if told is not None),
        )


async def execute(
    prepared: Prepared,
    inputs: Inputs,
    options: RunOptions,
    *,
    look: Look,
    folder: RunFolder,
    history: Path | None,
    mask: Mask,
    watch: Watch,
    followers: Sequence[Follower] = (),
) -> Finished:
    """Run a plan in its folder and report it; signals are listened to until that is done.

    `mask` knows the secrets of the configuration, and learns those that the run comes by.

    Raises: UsageError when the folder is taken; StorageError when the disk refuses.
    """
    ending = Ending(inputs=inputs, options=options, folder=folder, history=history)
    with folder.claimed(), received() as signals:
        folder.mark_started()
        async with trio.open_nursery() as nursery:
            interrupts = Interrupts()
            nursery.start_soon(interrupts.listen, signals)
            execution = Execution.begin(
                prepared, inputs, options, look, folder, mask=mask, interrupts=interrupts
            )
            finished = await _executed(execution, ending, watch, followers)
            nursery.cancel_scope.cancel()
        with suppress(StorageError):  # the run is over and reported: this changes nothing of it
            folder.mark_finished()
    return finished


async def _executed(
    execution: Execution, ending: Ending, watch: Watch, followers: Sequence[Follower]
) -> Finished:
    try:
        code = await execution.to_the_end(watch, followers)
    except Exception:
        # What was recorded up to the error is reported all the same; the error is what is told.
        with suppress(HarnessError):
            await trio.to_thread.run_sync(ending.report, 3)
        raise
    hurried = execution.interrupts.code is not None
    seconds = HURRIED_WAIT_S if hurried else HISTORY_WAIT_S
    return await trio.to_thread.run_sync(lambda: ending.report(code, wait_seconds=seconds))


def _at(cwd: Path, path: Path | None) -> Path | None:
    return None if path is None else cwd / path
