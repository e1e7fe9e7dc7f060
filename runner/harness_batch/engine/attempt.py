"""One attempt of a session, from its workspace to a verdict; every end leaves its patch.

The order is fixed: setup, conversation, patch, checks, verdict. Stopping (a signal, a limit of
time) cuts setup, conversation and checks short, never the writing down.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import trio
from attrs import define, evolve, field

from harness_batch.engine.checks import Result, how_it_ended, run_check, run_shell, unmet
from harness_batch.engine.conversation import Agenda, carry_on, converse
from harness_batch.engine.endings import Answered, Broke, Ending, Stopped
from harness_batch.engine.log import AttemptLog, timestamp
from harness_batch.engine.loop import Loop
from harness_batch.engine.quarantine import LEAK, QUARANTINED_PATCH, leaks, withheld
from harness_batch.engine.retries import Ended, used_up
from harness_batch.engine.site import Change, Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.verdict import Verdict, judge
from harness_batch.events import CheckFinished, PatchWritten, SessionFinished, SessionStarted
from harness_batch.recipe.record import Check, Recipe
from harness_batch.records import Attempt, CheckResult, Patch

SETUP_TIMEOUT_S = 1800.0
_NO_PATCH = Broke("git", "taking the patch took too long", "infra")


@define(kw_only=True)
class AttemptRun:
    """Everything one attempt needs: `begin`, `work` in a site, `finish`, once each."""

    agenda: Agenda
    attempt: Attempt
    log: AttemptLog
    spend: Spend
    stop: StopSignal
    folder: Path
    """The attempt's folder of the run; exists."""
    write: Callable[[Path, bytes], None]
    """Writes a file of the run: whole or not at all, secrets masked. Raises: StorageError."""
    setup: tuple[str, ...] = ()
    """Shell commands that prepare the workspace first."""
    before: Loop | None = None
    """The conversation of the attempt before this one."""
    message: str | None = None
    """What that conversation goes on with; None: it begins again."""
    loop: Loop | None = None
    """This one's conversation, once it has begun."""
    checks: list[CheckResult] = field(factory=list)
    """Of the recipe."""
    retry_checks: list[CheckResult] = field(factory=list)
    _began: float = field(factory=trio.current_time)
    _waited: float = field(init=False)
    _expected: list[CheckResult] = field(factory=list)
    _change: Change = field(factory=lambda: Change(patch=None))
    _leaked: list[str] = field(factory=list)
    """Outputs in which a secret of the runner's was found."""

    def __attrs_post_init__(self) -> None:
        self._waited = self.spend.waited_s

    def begin(self) -> None:
        """Write the beginning down. Raises: StorageError."""
        self.log.emit(SessionStarted(self.attempt))

    def ended(self, ending: Ending, attempts: int) -> Ended:
        """What the decision on another attempt looks at; `attempts` counts this one too."""
        return Ended(
            ending=ending,
            checks=self.checks,
            retry_checks=self.retry_checks,
            attempts=attempts,
            used_up=used_up(self.spend),
        )

    def finish(self, ending: Ending) -> Attempt:
        """Judge it and write its end down. Raises: StorageError."""
        if self.agenda.secrets.finds(_answer(ending).encode("utf-8", "replace")):
            self._leaked.append("answer")
        verdict = judge(
            ending,
            (*self.checks, *self.retry_checks, *self._expected),
            patch_refused=self._change.refused,
            has_patch=self._change.patch is not None,
            leaked=self._leaked,
        )
        return self._finished(verdict, ending)

    async def work(self, site: Site) -> Ending:
        """Carry it out, checks included. Raises: HarnessError in its kinds."""
        ending = await self._agent(site)
        with self.stop.writing() as writing:
            await self._take_patch(site)
        if writing.cancelled_caught:
            self.log.notice("taking the patch took too long; there is none")
            if isinstance(ending, Answered):
                return self.stop.ending() if self.stop.reason is not None else _NO_PATCH
            return ending
        return await self._check(site, ending) if isinstance(ending, Answered) else ending

    async def _agent(self, site: Site) -> Ending:
        ending: Ending | None = None
        with self.stop.scope() as scope:
            ending = await self._set_up(site) or await self._talk(site)
        return self.stop.ending() if scope.cancelled_caught or ending is None else ending

    async def _set_up(self, site: Site) -> Broke | None:
        for script in self.setup:
            end, output = await run_shell(
                site.setup or site.launcher, script, site.workspace.cwd, SETUP_TIMEOUT_S
            )
            if end.exit_code != 0:
                how = how_it_ended(end, SETUP_TIMEOUT_S)
                last = output.strip().rpartition("\n")[2]
                return Broke("setup", f"setup command {script!r}: {how}: {last[:300]}", "infra")
        return None

    async def _talk(self, site: Site) -> Ending:
        loop, prompt = await converse(
            self.agenda, site, self.log, self.spend, self.stop, before=self.before
        )
        self.loop = loop
        if self.before is None or self.message is None:
            return await loop.run(prompt)
        carry_on(loop, self.before)
        return await loop.run(self.message, synthetic=True)

    async def _take_patch(self, site: Site) -> None:
        item = self.agenda.item
        change = await site.workspace.change(_message(item.recipe.patch.message, item.key))
        self._change = change
        patch = change.patch
        if patch is None:
            return
        if leaks(patch, self.agenda.secrets):
            self._leaked.append("patch")
            change = evolve(change, applies=False, refused=f"{LEAK}; it was not kept")
            self.write(self.folder / QUARANTINED_PATCH, withheld(patch))
        else:
            self.write(self.folder / "change.patch", patch)
        self.log.emit(PatchWritten(self._patch_row(change, patch)))

    def _patch_row(self, change: Change, patch: bytes) -> Patch:
        return Patch(
            session_id=self.log.session_id,
            attempt_id=self.log.attempt_id,
            files=len(change.paths),
            added=change.added,
            removed=change.removed,
            bytes=len(patch),
            sha256=sha256(patch).hexdigest(),
            patch_id=change.patch_id,
            applies=change.applies,
            refused=change.refused,
            paths=list(change.paths),
        )

    async def _check(self, site: Site, ending: Answered) -> Ending:
        with self.stop.scope() as scope:
            for check in self.agenda.item.recipe.checks:
                self.checks.append(await self.run_check(check, site))
            for check in retry_checks(self.agenda.item.recipe):
                self.retry_checks.append(await self.run_check(check, site))
            self._expect(ending.text)
        return self.stop.ending() if scope.cancelled_caught else ending

    async def run_check(self, check: Check, site: Site) -> CheckResult:
        """Run it in the site and write its result down. Raises: SandboxError, StorageError."""
        result = await run_check(check, site.launcher, site.workspace.cwd, self.log)
        self.log.emit(CheckFinished(result))
        return result

    def _expect(self, answer: str) -> None:
        result = Result(
            answer=answer,
            paths=self._change.paths,
            cost_usd=self.spend.cost(),
            tools_used=frozenset(self.loop.runner.used) if self.loop else frozenset(),
        )
        for name, reason in unmet(self.agenda.item.recipe.expect, result):
            row = CheckResult(
                session_id=self.log.session_id,
                attempt_id=self.log.attempt_id,
                name=name,
                kind="expect",
                passed=reason is None,
                reason=reason,
            )
            self._expected.append(row)
            self.log.emit(CheckFinished(row))

    def _finished(self, verdict: Verdict, ending: Ending) -> Attempt:
        answer = _answer(ending)
        if answer:
            by_schema = self.agenda.item.recipe.response_schema is not None
            # What stands in for the schema's answer that never came is no answer to build on.
            name = "answer.json" if by_schema and isinstance(ending, Answered) else "answer.md"
            self.write(self.folder / name, answer.encode("utf-8", "replace"))
        wall = trio.current_time() - self._began
        ended = evolve(
            self.attempt,
            status=verdict.status,
            reason=verdict.reason,
            detail=verdict.detail,
            error_kind=verdict.error_kind,
            retryable=verdict.retryable,
            wall_s=wall,
            working_s=max(0.0, wall - (self.spend.waited_s - self._waited)),
            finished_at=timestamp(),
            answer=answer or None,
        )
        self.log.emit(SessionFinished(ended))
        return ended


def retry_checks(recipe: Recipe) -> Iterator[Check]:
    """The checks of `retry`, which have no names of their own."""
    rule = recipe.retry
    for number, command in enumerate(rule.checks if rule else (), start=1):
        assert rule is not None
        yield Check(name=f"retry-{number}", run=command, timeout=rule.timeout_seconds)


def _answer(ending: Ending) -> str:
    match ending:
        case Answered(text=text) | Stopped(answer=text):
            return text
        case _:
            return ""


def _message(template: str | None, key: str) -> str:
    return template or f"{key}\n\nProposed by an agent session of harness-batch; review before use."
