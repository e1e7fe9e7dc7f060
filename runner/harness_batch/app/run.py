"""One run from its first event to its last: journal, database, sessions, stops, reports."""

import os
import platform
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import trio
from attrs import define, evolve, field, frozen

from harness_batch import __version__
from harness_batch.app.ci import ci_job
from harness_batch.app.finish import Copies, into_history, reported, write_reports
from harness_batch.app.lock import lock_digest, lock_of, lock_text
from harness_batch.app.options import Inputs, RunOptions
from harness_batch.app.prepare import Prepared
from harness_batch.app.refusals import host_refusals
from harness_batch.app.resume import Earlier, Reuse, read_earlier, reusable
from harness_batch.app.sessions import Sessions
from harness_batch.app.sites import Sites, open_sites
from harness_batch.app.status import Status
from harness_batch.batch.exit_code import INTERRUPTED, TERMINATED, exit_code
from harness_batch.batch.scheduler import GRACE_S, Scheduler
from harness_batch.engine.budget import Budget
from harness_batch.engine.log import utc_now
from harness_batch.errors import StorageError
from harness_batch.events import (
    Notice,
    PartDelta,
    PartUpdated,
    Payload,
    RunFinished,
    RunStarted,
    SessionFinished,
)
from harness_batch.ids import new_id
from harness_batch.records import Run, Session
from harness_batch.store.bus import EventBus
from harness_batch.store.deltas import DeltaSlices
from harness_batch.store.disk import write_text
from harness_batch.store.folder import RunFolder
from harness_batch.store.journal import Follower, Journal
from harness_batch.store.masking import Mask
from harness_batch.store.projection import Projection
from harness_batch_reports.records import BatchReport

Watch = Callable[[EventBus], Awaitable[None]]
"""Follows the events while the run lasts; returns when the bus is closed."""


@frozen(kw_only=True)
class Finished:
    """A run that is over and reported."""

    exit_code: int
    report: BatchReport
    written: Mapping[str, Path]
    trouble: tuple[str, ...] = ()
    """What went wrong after the sessions, in words."""


@frozen
class SlicedLog:
    """The engine's log: everything to the journal at once, deltas in slices."""

    journal: Journal
    deltas: DeltaSlices

    def append(self, payload: Payload, session_id: str | None) -> None:
        """Write the event; a part's slices come before its update. Raises: StorageError."""
        match payload:
            case PartDelta() if session_id is not None:
                self.deltas.add(payload, session_id)
                return
            case PartUpdated(part=part):
                self.deltas.finish(part.id)
            case _:
                pass
        self.journal.append(payload, session_id)

    async def sync(self) -> None:
        """Wait for the disk. Raises: StorageError."""
        await self.journal.sync()


@define(kw_only=True)
class Execution:
    """A run under way, in a folder that this process has claimed."""

    prepared: Prepared
    inputs: Inputs
    options: RunOptions
    folder: RunFolder
    run: Run
    journal: Journal
    mask: Mask
    earlier: Earlier
    bus: EventBus = field(factory=EventBus)
    signalled: int | None = None
    """Exit code of the signal that stopped the run."""

    @classmethod
    def begin(
        cls, prepared: Prepared, inputs: Inputs, options: RunOptions, folder: RunFolder
    ) -> Self:
        """Open the journal, a new one or one that goes on. Raises: StorageError."""
        mask = Mask(prepared.config.secrets)
        earlier = read_earlier(folder.journal) if folder.run_id() else Earlier()
        run_id = earlier.run.run_id if earlier.run else _run_id(folder)
        job = ci_job(inputs.environ)
        run = Run(
            run_id=run_id,
            version=__version__,
            argv=list(options.argv),
            started_at=earlier.run.started_at if earlier.run else utc_now().isoformat(),
            ci_provider=job.provider,
            ci_url=job.url,
            trigger=job.trigger,
            budget_usd=options.max_cost,
        )
        journal = Journal.open(folder.journal, run_id, mask=mask)
        return cls(
            prepared=prepared,
            inputs=inputs,
            options=options,
            folder=folder,
            run=run,
            journal=journal,
            mask=mask,
            earlier=earlier,
        )

    async def to_the_end(self, watch: Watch, followers: Sequence[Follower]) -> int:
        """Run everything; the exit code. The journal is complete and closed afterwards.

        Raises: StorageError when nothing can be written down any more.
        """
        self.journal.follow(self.bus.follow)
        projection = Projection(self.folder.database, failed=self._database_failed)
        self.journal.follow(projection.take)
        for follower in followers:
            self.journal.follow(follower)
        deltas = DeltaSlices(self.journal, self.bus, mask=self.mask)
        status = Status(self.run.run_id, len(self.prepared.plan.items))
        self.journal.follow(status.take)
        log = SlicedLog(self.journal, deltas)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(projection.run)
            nursery.start_soon(watch, self.bus)
            try:
                async with trio.open_nursery() as housework:
                    housework.start_soon(deltas.keep_flushing)
                    housework.start_soon(status.keep_writing, self.folder)
                    code = await self._sessions(log)
                    housework.cancel_scope.cancel()
            finally:
                projection.close()
                self.bus.close()
        await self.journal.sync()
        self.journal.close()
        self.folder.write_status(status.as_json())
        return code

    async def _sessions(self, log: SlicedLog) -> int:
        items = self.prepared.plan.items
        refusals, sandbox, told = await host_refusals(items, self.options.sandbox)
        lock = lock_of(self.prepared.plan)
        self._write(self.folder.lock_file, lock_text(lock))
        self.run = evolve(self.run, sandbox=sandbox, lock_digest=lock_digest(lock))
        log.append(RunStarted(self.run), None)
        for text in (*told, *map(str, self.prepared.plan.warnings)):
            log.append(Notice("warning", text), None)
        self._close_dead_attempts(log)
        reuse = reusable(items, self.earlier, self.options.rerun)
        if self.earlier.run is not None:
            log.append(Notice("info", _reused(reuse)), None)
        budget = Budget(self.options.max_cost, spent=self.earlier.spent)
        sites = await open_sites(
            self.prepared.repositories,
            self.inputs,
            self.run.run_id,
            keep=self.options.keep_worktrees,
            notice=lambda session_id, text: _tell(log, session_id, text),
        )
        for text in sites.notices:
            log.append(Notice("warning", text), None)
        sessions = self._composed(log, budget, refusals, sites, reuse)
        scheduler = Scheduler(
            jobs=self.options.jobs,
            run_one=sessions.run_one,
            skip=sessions.skip,
            max_failures=self.options.max_failures,
            out_of_money=lambda: budget.exhausted,
        )
        ended = await self._scheduled(scheduler, reuse)
        code = exit_code((*reuse.kept, *ended), stopped=scheduler.stopped, signal=self.signalled)
        run = evolve(self.run, exit_code=code, finished_at=utc_now().isoformat())
        log.append(RunFinished(run), None)
        return code

    def _composed(
        self,
        log: SlicedLog,
        budget: Budget,
        refusals: Mapping[str, tuple[str, str]],
        sites: Sites,
        reuse: Reuse,
    ) -> Sessions:
        return Sessions(
            run_id=self.run.run_id,
            config=self.prepared.config,
            notes=self.prepared.notes,
            log=log,
            folder=self.folder,
            budget=budget,
            mask=self.mask,
            open_site=sites.of,
            refusals=refusals,
            date=utc_now().date().isoformat(),
            platform=f"{platform.system()} {platform.machine()}",
            earlier=reuse.earlier,
        )

    async def _scheduled(self, scheduler: Scheduler, reuse: Reuse) -> list[Session]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, scheduler, nursery)
            if self.options.max_seconds is not None:
                nursery.start_soon(_stop_after, self.options.max_seconds, scheduler)
            ended = await scheduler.run(reuse.again)
            nursery.cancel_scope.cancel()
        return ended

    async def _listen(self, scheduler: Scheduler, nursery: trio.Nursery) -> None:
        """The first signal stops the sessions, a second one the process, at once."""
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                code = INTERRUPTED if number == signal.SIGINT else TERMINATED
                if self.signalled is not None:
                    # Nothing is tidied: the journal is whole after every line, and the session
                    # supervisors end everything when their lifeline closes with this process.
                    os._exit(code)
                self.signalled = code
                scheduler.stop("interrupted")
                nursery.start_soon(_cut_off, nursery.cancel_scope)

    def _write(self, path: Path, text: str) -> None:
        write_text(path, self.mask(text))

    def _close_dead_attempts(self, log: SlicedLog) -> None:
        for attempt in self.earlier.open_attempts.values():
            dead = evolve(
                attempt,
                status="errored",
                reason="killed",
                detail="the runner was killed before the session ended",
                error_kind="infra",
                retryable=True,
                finished_at=utc_now().isoformat(),
            )
            log.append(SessionFinished(dead), attempt.session_id)

    def _database_failed(self, error: StorageError) -> None:
        self.journal.append(Notice("error", f"{error}; it is rebuilt from the journal"), None)


async def execute(
    prepared: Prepared,
    inputs: Inputs,
    options: RunOptions,
    *,
    folder: RunFolder,
    history: Path,
    watch: Watch,
    followers: Sequence[Follower] = (),
) -> Finished:
    """Run a plan in its folder and report it.

    Raises: UsageError when the folder is taken; StorageError when the disk refuses.
    """
    with folder.claimed():
        execution = Execution.begin(prepared, inputs, options, folder)
        code = await execution.to_the_end(watch, followers)
        return await trio.to_thread.run_sync(_report, execution, code, history)


def _report(execution: Execution, code: int, history: Path) -> Finished:
    options, folder = execution.options, execution.folder
    report = reported(folder)
    trouble = into_history(folder, history)
    copies = Copies(
        dialect=options.dialect,
        junit=_at(execution.inputs.cwd, options.junit),
        summary=_at(execution.inputs.cwd, options.summary),
        project=execution.inputs.cwd,
    )
    written = write_reports(folder, report, copies)
    return Finished(
        exit_code=code,
        report=report,
        written=written,
        trouble=(trouble,) if trouble is not None else (),
    )


def _run_id(folder: RunFolder) -> str:
    """The folder's own name when it was made for a run, else a fresh id (`--out`)."""
    name = folder.path.name
    return name if name.startswith("run_") else new_id("run")


def _at(cwd: Path, path: Path | None) -> Path | None:
    return None if path is None else cwd / path


def _tell(log: SlicedLog, session_id: str, text: str) -> None:
    log.append(Notice("warning", text), session_id)


def _reused(reuse: Reuse) -> str:
    return f"resumed: {len(reuse.kept)} session(s) stand, {len(reuse.again)} run"


async def _stop_after(seconds: float, scheduler: Scheduler) -> None:
    await trio.sleep(seconds)
    scheduler.stop("max_time")


async def _cut_off(scope: trio.CancelScope) -> None:
    await trio.sleep(GRACE_S)
    scope.cancel()
