"""One session: a place to work, and in it attempts until retries.py says that it is done.

An attempt is finished before the next one begins. Limits, budget and clocks go over all of them.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path

from attrs import define, evolve, field, frozen

from harness_batch.engine.attempt import AttemptRun, retry_checks
from harness_batch.engine.endings import Broke, Ending, Interrupted
from harness_batch.engine.failures import failure
from harness_batch.engine.family import Carryover
from harness_batch.engine.log import timestamp
from harness_batch.engine.retries import Anew, Done, GoOn, feedback, following
from harness_batch.engine.site import Site
from harness_batch.ids import new_id
from harness_batch.messages import ModelRef
from harness_batch.recipe.record import Check, Recipe
from harness_batch.records import Attempt, CheckResult

ON_FAILURE = "on_failure"
"""Name of the row of that command."""
_NO_RESET = Broke("git", "putting the workspace back to its base took too long", "infra")


@frozen
class Place:
    """Where an attempt leaves its files."""

    folder: Path
    outputs: Path


@define(kw_only=True)
class SessionRun:
    """Runs a session from its first attempt of this run to its last."""

    current: AttemptRun
    """The first one at first."""
    open_site: Callable[[], AbstractAsyncContextManager[Site]]
    place: Callable[[int], Place]
    """Makes the place of attempt n."""
    _recovery: CheckResult | None = field(default=None)

    async def run(self) -> Attempt:
        """The last attempt's record. Raises: StorageError, when nothing can be written any more."""
        self.current.begin()
        try:
            async with self.open_site() as site:
                ending = await self._attempts(site)
        except Exception as error:  # noqa: BLE001  # a bug in one session must not end the others
            ending = failure(error, self._write_trace)
        return self.current.finish(ending)

    @property
    def answered_by(self) -> ModelRef | None:
        """The model whose replies were taken; None while there was none."""
        loop = self.current.loop or self.current.before
        return loop.stepper.model.ref if loop and self.current.spend.steps else None

    async def _attempts(self, site: Site) -> Ending:
        for number in count(1):
            ending = await self.current.work(site)
            step = following(self.current.ended(ending, number), self._recipe.retry)
            if isinstance(step, Done):
                if step.why is not None:
                    self.current.log.notice(step.why)
                return ending
            if (last := await self._recover(site, ending, step)) is not None:
                return last
            self.current.finish(ending)
            self.current = self._next(step)
            self.current.begin()
            if step.reset and (broke := await self._reset(site)) is not None:
                return broke
        raise AssertionError

    @property
    def _recipe(self) -> Recipe:
        return self.current.agenda.item.recipe

    async def _recover(self, site: Site, ending: Ending, step: Anew | GoOn) -> Ending | None:
        """Run `on_failure`; the session's ending when no other attempt can follow."""
        rule, stop = self._recipe.retry, self.current.stop
        self._recovery = None
        if rule is not None and rule.on_failure.strip():
            seconds = rule.on_failure_timeout_seconds
            check = Check(name=ON_FAILURE, run=rule.on_failure, timeout=seconds)
            with stop.scope():
                self._recovery = await self.current.run_check(check, site)
        if (over := stop.over()) is not None:
            # A limit of time only forbids another attempt; this one was judged by its checks.
            return over if isinstance(over, Interrupted) else ending
        if self._recovery is not None and not self._recovery.passed and isinstance(step, Anew):
            self.current.log.notice(f"no further attempt: on_failure: {self._recovery.reason}")
            return ending
        return None

    def _next(self, step: Anew | GoOn) -> AttemptRun:
        ended = self.current
        log = evolve(ended.log, attempt_id=new_id("att"))
        attempt = Attempt(
            attempt_id=log.attempt_id,
            session_id=log.session_id,
            n=ended.attempt.n + 1,
            started_at=timestamp(),
        )
        place = self.place(attempt.n)
        return AttemptRun(
            agenda=evolve(
                ended.agenda,
                outputs=place.outputs,
                carryover=ended.agenda.carryover if isinstance(step, GoOn) else Carryover(),
            ),
            attempt=attempt,
            log=log,
            spend=ended.spend,
            stop=ended.stop,
            folder=place.folder,
            write=ended.write,
            setup=self._recipe.workspace.setup if step.reset else (),
            before=ended.loop,
            message=self._message(step) if isinstance(step, GoOn) else None,
        )

    def _message(self, step: GoOn) -> str:
        recipe = self._recipe
        commands = {check.name: check.run for check in (*recipe.checks, *retry_checks(recipe))}
        if recipe.retry is not None:
            commands[ON_FAILURE] = recipe.retry.on_failure
        schema = recipe.response_schema is not None
        return feedback(step, commands, self._recovery, schema=schema)

    async def _reset(self, site: Site) -> Broke | None:
        with self.current.stop.writing() as scope:
            await site.workspace.reset()
        return _NO_RESET if scope.cancelled_caught else None

    def _write_trace(self, trace: bytes) -> None:
        self.current.write(self.current.folder / "traceback.txt", trace)
