"""One run from its first event to its last: journal, database, sessions, stops."""

import platform
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import trio
from attrs import define, evolve, field

from harness_batch import __version__
from harness_batch.app.admissions import Admissions
from harness_batch.app.ci import ci_job
from harness_batch.app.containment import Look
from harness_batch.app.interrupts import GRACE_S, Interrupts
from harness_batch.app.last_words import (
    KILLED,
    End,
    close_attempts,
    close_children,
    close_sessions,
    end_of,
    skip_rest,
)
from harness_batch.app.lock import lock_digest, lock_of, lock_text
from harness_batch.app.options import Inputs, RunOptions
from harness_batch.app.prepare import Prepared
from harness_batch.app.prices import load_prices
from harness_batch.app.resume import Earlier, Reuse, read_earlier, reusable
from harness_batch.app.sessions import Sessions
from harness_batch.app.sites import Sites, open_sites
from harness_batch.app.sliced_log import SlicedLog
from harness_batch.app.status import Status
from harness_batch.batch.exit_code import exit_code
from harness_batch.batch.scheduler import Scheduler, StopReason
from harness_batch.engine.budget import Budget
from harness_batch.engine.log import timestamp
from harness_batch.errors import StorageError
from harness_batch.events import Notice, RunFinished, RunStarted
from harness_batch.ids import new_id
from harness_batch.models.access import Keyring
from harness_batch.plan.item import Item
from harness_batch.records import Run
from harness_batch.store.bus import EventBus
from harness_batch.store.deltas import DeltaSlices
from harness_batch.store.disk import write_text
from harness_batch.store.folder import RunFolder
from harness_batch.store.journal import Follower, Journal
from harness_batch.store.masking import Mask
from harness_batch.store.projection import Beginning, Projection

Watch = Callable[[EventBus], Awaitable[None]]
"""Follows the events while the run lasts; returns when the bus is closed."""


@define(kw_only=True)
class Execution:
    """A run under way, in a folder that this process has claimed."""

    prepared: Prepared
    inputs: Inputs
    options: RunOptions
    look: Look
    folder: RunFolder
    run: Run
    journal: Journal
    mask: Mask
    known: Earlier
    """What the journal says, kept up to date: of earlier tries at first, then of this one too."""
    interrupts: Interrupts
    bus: EventBus = field(factory=EventBus)
    _composed: Sessions | None = None
    _again: tuple[Item, ...] = ()
    _stopped: StopReason | None = None

    @classmethod
    def begin(
        cls,
        prepared: Prepared,
        inputs: Inputs,
        options: RunOptions,
        look: Look,
        folder: RunFolder,
        *,
        mask: Mask,
        interrupts: Interrupts,
    ) -> Self:
        """Open the journal, a new one or one that goes on. Raises: StorageError."""
        known = read_earlier(folder.journal) if folder.run_id() else Earlier()
        known.created.clear()
        run = _row(known, _run_id(folder), prepared, inputs, options)
        folder.hold_ballast()
        return cls(
            prepared=prepared,
            inputs=inputs,
            options=options,
            look=look,
            folder=folder,
            run=run,
            journal=Journal.open(folder.journal, run.run_id, mask=mask),
            mask=mask,
            known=known,
            interrupts=interrupts,
        )

    async def to_the_end(self, watch: Watch, followers: Sequence[Follower]) -> int:
        """Run everything; the exit code. The journal is complete and closed afterwards.

        Raises: StorageError when nothing can be written down any more.
        """
        resumed = self.known.run is not None
        before = Beginning(self.folder.journal, self.journal.last_seq) if resumed else None
        projection = Projection(self.folder.database, failed=self._database_failed, earlier=before)
        status = Status(self.run.run_id, len(self.prepared.plan.items))
        ours = (self.known.take, self.bus.follow, projection.take, status.take)
        for follower in (*ours, *followers):
            self.journal.follow(follower)
        deltas = DeltaSlices(self.journal, self.bus, mask=self.mask)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(projection.run)
            nursery.start_soon(watch, self.bus)
            nursery.start_soon(load_prices, self.prepared)
            beside = trio.CancelScope()
            writing = partial(status.keep_writing, self.folder)
            nursery.start_soon(_beside, beside, deltas.keep_flushing, writing)
            try:
                code = await self._sessions(SlicedLog(self.journal, deltas), resumed=resumed)
            finally:
                self.folder.drop_ballast()
                beside.cancel()
                with suppress(StorageError):  # the journal has it all
                    self.folder.write_status(status.as_json())
                projection.close()
                self.bus.close()
        await self.journal.sync()
        self.journal.close()
        self.folder.live_view().database.unlink(missing_ok=True)
        return code

    async def _sessions(self, log: SlicedLog, *, resumed: bool) -> int:
        try:
            scheduler, items = await self._begun(log, resumed=resumed)
            try:
                await self._scheduled(scheduler, items)
            finally:
                self._stopped = scheduler.stopped
        except BaseException as error:
            with suppress(StorageError):  # the first error tells
                self._end(log, error)
            raise
        return self._end(log, None)

    async def _begun(self, log: SlicedLog, *, resumed: bool) -> tuple[Scheduler, tuple[Item, ...]]:
        """All that comes before the first session."""
        items = self.prepared.plan.items
        containment = await self.look.containment(items, self._private_files())
        cut = self.prepared.cut
        lock = lock_of(cut.items, cut.shards) if cut else lock_of(items)
        write_text(self.folder.lock_file, self.mask(lock_text(lock)))
        self.run = evolve(self.run, sandbox=containment.record(), lock_digest=lock_digest(lock))
        log.append(RunStarted(self.run), None)
        close_attempts(self.known, log, KILLED)
        close_children(self.known, log, KILLED)
        reuse = reusable(items, self.known, self.options.rerun)
        close_sessions(self.known, log, KILLED, {item.key for item in reuse.again})
        sites = await open_sites(
            self.prepared.repositories,
            self.inputs,
            self.run.run_id,
            containment,
            keep=self.options.keep_worktrees,
            notice=lambda session_id, text: log.append(Notice("warning", text), session_id),
        )
        warned = (w.text for w in self.prepared.plan.warnings)
        for text in (*containment.told(), *warned, *sites.notices):
            log.append(Notice("warning", text), None)
        if resumed:
            log.append(Notice("info", _reused(reuse)), None)
        budget = Budget(self.options.max_cost, spent=self.known.spent)
        self._again = reuse.again
        self._composed = self._compose(log, budget, sites, reuse)
        scheduler = Scheduler(
            jobs=self.options.jobs,
            run_one=self._composed.run_one,
            skip=self._composed.skip,
            max_failures=self.options.max_failures,
            out_of_money=lambda: budget.exhausted,
            running_low=budget.running_low,
        )
        return scheduler, reuse.again

    def _private_files(self) -> Iterator[Path]:
        """Configuration files, which may hold keys; those of a repository are no secret."""
        tops = [repository.path for repository in self.prepared.repositories.values()]
        for file in self.prepared.config.files:
            if not any(file.resolve().is_relative_to(top) for top in tops):
                yield file

    def _compose(self, log: SlicedLog, budget: Budget, sites: Sites, reuse: Reuse) -> Sessions:
        config = self.prepared.config
        return Sessions(
            run_id=self.run.run_id,
            config=config,
            admissions=Admissions(providers=config.providers, log=log, jobs=self.options.jobs),
            notes=self.prepared.notes,
            log=log,
            folder=self.folder,
            budget=budget,
            mask=self.mask,
            open_site=sites.of,
            refusal=sites.containment.refusal,
            date=timestamp()[:10],
            platform=f"{platform.system()} {platform.machine()}",
            child_items=self.prepared.child_items,
            keyring=Keyring(self.mask.learn),
            earlier=reuse.earlier,
        )

    async def _scheduled(self, scheduler: Scheduler, items: Sequence[Item]) -> None:
        if self.interrupts.code is not None:
            scheduler.stop("interrupted")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signal, self.interrupts, scheduler, nursery)
            if self.options.max_seconds is not None:
                nursery.start_soon(_stop_after, self.options.max_seconds, scheduler)
            await scheduler.run(items)
            nursery.cancel_scope.cancel()

    def _end(self, log: SlicedLog, trouble: BaseException | None) -> int:
        """Write the run's end down; on a full disk in the room that was kept for it."""
        end = end_of(trouble, signalled=self.interrupts.code is not None)
        try:
            return self._last_words(log, end, trouble)
        except StorageError:
            self.folder.drop_ballast()
            self.journal.repair()
            return self._last_words(log, end, trouble)

    def _last_words(self, log: SlicedLog, end: End, trouble: BaseException | None) -> int:
        close_attempts(self.known, log, end)
        close_children(self.known, log, end)
        close_sessions(self.known, log, end)
        if self._composed is not None:
            why = self._stopped or end.reason
            skip_rest(self.known, self._again, self._composed.skip, why)
        code = 3
        if trouble is None:
            sessions = self.known.sessions.values()
            code = exit_code(sessions, stopped=self._stopped, signal=self.interrupts.code)
        run = evolve(self.run, exit_code=code, finished_at=timestamp())
        log.append(RunFinished(run), None)
        return code

    def _database_failed(self, error: StorageError) -> None:
        with suppress(StorageError):  # the sessions hear of it with their next event
            self.journal.append(Notice("error", f"{error}; it is rebuilt from the journal"), None)


def _row(
    known: Earlier, fresh_id: str, prepared: Prepared, inputs: Inputs, options: RunOptions
) -> Run:
    """The run's own record as it begins, or goes on."""
    job, cut = ci_job(inputs.environ), prepared.cut
    return Run(
        run_id=known.run.run_id if known.run else fresh_id,
        version=__version__,
        argv=list(options.argv),
        started_at=known.run.started_at if known.run else timestamp(),
        ci_provider=job.provider,
        ci_url=job.url,
        trigger=job.trigger,
        shard_index=cut.shard.index if cut else None,
        shard_total=cut.shard.total if cut else None,
        budget_usd=options.max_cost,
    )


def _run_id(folder: RunFolder) -> str:
    """The folder's own name when it was made for a run, else a fresh id (`--out`)."""
    name = folder.path.name
    return name if name.startswith("run_") else new_id("run")


def _reused(reuse: Reuse) -> str:
    return f"resumed: sessions kept {len(reuse.kept)}, run again {len(reuse.again)}"


async def _stop_after(seconds: float, scheduler: Scheduler) -> None:
    await trio.sleep(seconds)
    scheduler.stop("max_time")


async def _stop_on_signal(
    interrupts: Interrupts, scheduler: Scheduler, nursery: trio.Nursery
) -> None:
    await interrupts.came.wait()
    scheduler.stop("interrupted")
    await trio.sleep(GRACE_S)
    nursery.cancel_scope.cancel()


async def _beside(scope: trio.CancelScope, *works: Callable[[], Awaitable[None]]) -> None:
    with scope:
        async with trio.open_nursery() as nursery:
            for work in works:
                nursery.start_soon(_quietly, work)


async def _quietly(work: Callable[[], Awaitable[None]]) -> None:
    # A disk that refuses here refuses the sessions' next event too, and there it counts.
    with suppress(StorageError):
        await work()
