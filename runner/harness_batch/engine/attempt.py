"""One attempt of a session, from an empty workspace to a verdict; every end leaves its patch.

The order is fixed: workspace, setup, conversation, patch, checks, verdict. Stopping (a signal, a
limit of time) cuts setup, conversation and checks short, never the writing down.
"""

import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import Path

import trio
from attrs import define, evolve, field

from harness_batch.engine.checks import Result, how_it_ended, run_check, run_shell, unmet
from harness_batch.engine.conversation import Agenda, converse
from harness_batch.engine.endings import Answered, Broke, Ending, Stopped
from harness_batch.engine.log import AttemptLog
from harness_batch.engine.loop import broke
from harness_batch.engine.site import Change, Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.verdict import Verdict, judge
from harness_batch.errors import (
    GitError,
    HarnessError,
    ProviderError,
    SandboxError,
    StorageError,
    cause_of,
)
from harness_batch.events import CheckFinished, PatchWritten, SessionFinished, SessionStarted
from harness_batch.records import Attempt, CheckResult, Patch

SETUP_TIMEOUT_S = 1800.0
_NO_PATCH = Broke("git", "taking the patch took too long", "infra")


@define(kw_only=True)
class AttemptRun:
    """Everything one attempt needs; `run` spends it."""

    agenda: Agenda
    attempt: Attempt
    log: AttemptLog
    spend: Spend
    stop: StopSignal
    folder: Path
    """The attempt's folder of the run; exists."""
    open_site: Callable[[], AbstractAsyncContextManager[Site]]
    write: Callable[[Path, bytes], None]
    """Writes a file of the run: whole or not at all, secrets masked. Raises: StorageError."""
    _began: float = field(factory=trio.current_time)
    _checks: list[CheckResult] = field(factory=list)
    _change: Change = field(factory=lambda: Change(patch=None))
    _used: frozenset[str] = frozenset()

    async def run(self) -> Attempt:
        """The finished record. Raises: StorageError, when nothing can be written down any more."""
        self.log.emit(SessionStarted(self.attempt))
        ending = await self._ending()
        verdict = judge(
            ending,
            self._checks,
            patch_refused=self._change.refused,
            has_patch=self._change.patch is not None,
        )
        return self._finished(verdict, _answer(ending))

    async def _ending(self) -> Ending:
        try:
            async with self.open_site() as site:
                return await self._work(site)
        except Exception as error:  # noqa: BLE001  # a bug in one session must not end the others
            return self._failed(error)

    def _failed(self, error: Exception) -> Broke:
        match cause_of(error):
            case StorageError() as cause:
                raise cause from error
            case HarnessError() as cause:
                return _failure(cause)
            case cause:
                return self._bug(error, cause)

    async def _work(self, site: Site) -> Ending:
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
        with self.stop.scope() as scope:
            ending: Ending | None = await self._set_up(site)
            if ending is None:
                ending = await self._talk(site)
        return self.stop.ending() if scope.cancelled_caught else ending

    async def _set_up(self, site: Site) -> Broke | None:
        for script in self.agenda.item.recipe.workspace.setup:
            end, output = await run_shell(
                site.launcher, script, site.workspace.cwd, SETUP_TIMEOUT_S
            )
            if end.exit_code != 0:
                how = how_it_ended(end, SETUP_TIMEOUT_S)
                last = output.strip().rpartition("\n")[2]
                return Broke("setup", f"setup command {script!r}: {how}: {last[:300]}", "infra")
        return None

    async def _talk(self, site: Site) -> Ending:
        loop, prompt = converse(self.agenda, site, self.log, self.spend, self.stop)
        try:
            return await loop.run(prompt)
        finally:
            self._used = frozenset(loop.runner.used)

    async def _take_patch(self, site: Site) -> None:
        item = self.agenda.item
        change = await site.workspace.change(_message(item.recipe.patch.message, item.key))
        self._change = change
        patch = change.patch
        if patch is None:
            return
        self.write(self.folder / "change.patch", patch)
        row = Patch(
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
        self.log.emit(PatchWritten(row))

    async def _check(self, site: Site, ending: Answered) -> Ending:
        with self.stop.scope() as scope:
            for check in self.agenda.item.recipe.checks:
                self._note(await run_check(check, site.launcher, site.workspace.cwd, self.log))
            self._expect(ending.text)
        return self.stop.ending() if scope.cancelled_caught else ending

    def _expect(self, answer: str) -> None:
        result = Result(
            answer=answer,
            paths=self._change.paths,
            cost_usd=self.spend.cost(),
            tools_used=self._used,
        )
        for name, reason in unmet(self.agenda.item.recipe.expect, result):
            self._note(
                CheckResult(
                    session_id=self.log.session_id,
                    attempt_id=self.log.attempt_id,
                    name=name,
                    kind="expect",
                    passed=reason is None,
                    reason=reason,
                )
            )

    def _note(self, result: CheckResult) -> None:
        self._checks.append(result)
        self.log.emit(CheckFinished(result))

    def _finished(self, verdict: Verdict, answer: str) -> Attempt:
        if answer:
            schema = self.agenda.item.recipe.response_schema
            name = "answer.md" if schema is None else "answer.json"
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
            working_s=max(0.0, wall - self.spend.waited_s),
            finished_at=self.log.now(),
            answer=answer or None,
        )
        self.log.emit(SessionFinished(ended))
        return ended

    def _bug(self, error: Exception, cause: BaseException) -> Broke:
        trace = "".join(traceback.format_exception(error))
        self.write(self.folder / "traceback.txt", trace.encode("utf-8", "replace"))
        last = traceback.format_exception_only(cause)[0].strip()
        return Broke("internal", f"a bug in the runner, see traceback.txt: {last[:200]}", "infra")


def _failure(error: HarnessError) -> Broke:
    match error:
        case ProviderError():
            return broke(error)
        case GitError():
            return Broke("git", str(error), "infra")
        case SandboxError():
            return Broke("sandbox", str(error), "infra")
        case _:
            return Broke("host", str(error), "infra")


def _answer(ending: Ending) -> str:
    match ending:
        case Answered(text=text) | Stopped(answer=text):
            return text
        case _:
            return ""


def _message(template: str | None, key: str) -> str:
    return template or f"{key}\n\nProposed by an agent session of harness-batch; review before use."
