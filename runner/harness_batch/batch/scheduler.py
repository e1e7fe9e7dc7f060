"""Many sessions at once: so many at a time, in order, each on its own; stops reach all of them.

One failing session never ends another. After a stop nothing new is admitted; what runs is cut
short through its own StopSignal and still writes down its patch and records.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import trio
from attrs import define, field

from harness_batch.engine.stop import StopSignal
from harness_batch.plan.item import Item
from harness_batch.records import Session

StopReason = Literal["interrupted", "max_cost", "max_time", "max_failures"]


@define(kw_only=True)
class Scheduler:
    """Runs the items of one plan."""

    jobs: int
    run_one: Callable[[Item, StopSignal], Awaitable[Session]]
    skip: Callable[[Item, str], Session]
    """Records an item that is not run, with the reason."""
    max_failures: int | None = None
    out_of_money: Callable[[], bool] = lambda: False
    """A call was refused because it did not fit into the run's budget."""
    running_low: Callable[[], bool] = lambda: False
    """So little of the budget is left that nothing new is begun."""
    stopped: StopReason | None = None
    failures: int = 0
    _running: list[StopSignal] = field(factory=list)
    _alone: trio.Lock = field(factory=trio.Lock)

    async def run(self, items: Sequence[Item]) -> list[Session]:
        """All sessions, ended or skipped, in the order of `items`."""
        waiting = deque(enumerate(items))
        done: dict[int, Session] = {}
        async with trio.open_nursery() as nursery:
            for _ in range(min(self.jobs, len(items))):
                nursery.start_soon(self._work, waiting, done)
        for index, item in waiting:
            done[index] = self.skip(item, self.stopped or "interrupted")
        return [done[index] for index in range(len(items))]

    def stop(self, reason: StopReason) -> None:
        """Admit nothing more and cut short what runs; the first reason counts."""
        if self.stopped is None:
            self.stopped = reason
        for signal in self._running:
            signal.ask(reason)

    async def _work(self, waiting: deque[tuple[int, Item]], done: dict[int, Session]) -> None:
        while waiting and self.stopped is None:
            if self.running_low():
                self.stopped = "max_cost"
                return
            index, item = waiting.popleft()
            if item.recipe.workspace.mode == "in-place":
                async with self._alone:
                    done[index] = await self._run(item)
            else:
                done[index] = await self._run(item)
            self._count(done[index])

    async def _run(self, item: Item) -> Session:
        if self.stopped is not None:
            return self.skip(item, self.stopped)
        signal = StopSignal()
        self._running.append(signal)
        try:
            return await self.run_one(item, signal)
        finally:
            self._running.remove(signal)

    def _count(self, session: Session) -> None:
        if session.status in ("failed", "errored"):
            self.failures += 1
            if self.max_failures is not None and self.failures >= self.max_failures:
                self.stop("max_failures")
        if self.stopped is None and self.out_of_money():
            self.stopped = "max_cost"
