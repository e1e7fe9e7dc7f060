"""The children of one session: started for a tool call, told to go on, run in the background.

A child is a session of its own with a conversation of its own, in its parent's workspace. It may do
what its own rules and its parent's both allow, what it uses counts for its parent, and whatever
goes wrong in it is a report to its parent. When the parent is stopped, its children are stopped
first and still write down how they ended.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import trio
from attrs import define, evolve, field

from harness_batch.engine.budget import Budget
from harness_batch.engine.family import Child, ChildSessions, Parent
from harness_batch.engine.jobs import Jobs
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.errors import only_cause
from harness_batch.limits import MAX_CHILD_DEPTH, MAX_RUNNING_JOBS
from harness_batch.messages import JsonObject, Subtask
from harness_batch.permissions.judge import Policy
from harness_batch.plan.item import Item
from harness_batch.records import Attempt, Job
from harness_batch.rules import Ask
from harness_batch.tools.delegates import Errand, NotStarted, Report
from harness_batch.tools.protocol import Tool
from harness_batch.tools.sub_recipe import SubRecipeTool
from harness_batch.tools.task import TaskTool

GRACE_S = 5.0
"""How long a child that is stopped may take to write down how it ended."""
RUNNING = "you are told its result when it is there"
CUT_OFF = "it was cut off"


def _nowhere(_body: Subtask) -> None:
    """Before there is a conversation nothing can be noted."""


@define(kw_only=True)
class Children:
    """`Delegates` of one attempt of one session."""

    parent: Parent
    sessions: ChildSessions
    jobs: Jobs
    known: dict[str, Child] = field(factory=dict)
    """Children by session id."""
    note: Callable[[Subtask], None] = _nowhere
    """Puts a part into the reply whose tool call is being dealt with."""
    _nursery: trio.Nursery | None = None

    def tools(self) -> tuple[Tool, ...]:
        """`task` and the sub-recipes; none where a child would be too deep."""
        if self.parent.depth >= MAX_CHILD_DEPTH:
            return ()
        recipes = (
            SubRecipeTool(
                delegates=self, name=sub.name, about=sub.description, parameters=sub.parameters
            )
            for sub in self.parent.item.recipe.sub_recipes
        )
        return (TaskTool(self, self.agents()), *recipes)

    def hidden(self) -> frozenset[str]:
        """Those of `tools` that no rule allows with any arguments."""
        names = {sub.name for sub in self.parent.item.recipe.sub_recipes}
        unable = {name for name in names if not self._may(name)}
        return frozenset(unable if self.agents() else unable | {"task"})

    def agents(self) -> Mapping[str, str]:
        """See `Delegates`."""
        return {
            name: about
            for name, about in self.sessions.agents(self.parent.item).items()
            if self._may(name)
        }

    def unfit(self, agent: str) -> str | None:
        """See `Delegates`."""
        if agent in self.sessions.agents(self.parent.item):
            return None
        return f"there is no agent {agent!r} that can be a subagent"

    async def send(self, errand: Errand) -> Report | NotStarted:
        """See `Delegates`."""
        if errand.background and self.jobs.running() >= MAX_RUNNING_JOBS:
            return NotStarted(f"{MAX_RUNNING_JOBS} background jobs are running; no more at a time")
        if errand.session is not None:
            child = self._going_on(errand.session, errand)
        else:
            item = self.sessions.of_agent(self.parent.item, errand.agent, errand.prompt)
            child = self._new(item)
        if isinstance(child, NotStarted):
            return child
        self._noted(child, errand.description, background=errand.background)
        if errand.background:
            return self._in_background(child, errand)
        return await self._run_awaited(child)

    async def run_recipe(self, name: str, arguments: JsonObject) -> Report | NotStarted:
        """See `Delegates`."""
        child = self._new(self.sessions.of_recipe(self.parent.item, name, arguments))
        if isinstance(child, NotStarted):
            return child
        self._noted(child, name, background=False)
        return await self._run_awaited(child)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """The time in which background children may run; those still running then are stopped."""
        with only_cause():
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                yield
                nursery.cancel_scope.cancel()

    def board(self) -> str | None:
        """What a primary agent is to be shown of its jobs; None: nothing has changed."""
        return self.jobs.news() if self.parent.depth == 0 else None

    def _may(self, name: str) -> bool:
        return self.parent.policy.allows(Ask("task", name))

    def _new(self, item: Item | str) -> Child | NotStarted:
        if isinstance(item, str):
            return NotStarted(item)
        parent = self.parent
        child = Child(
            session=self.sessions.begin(item, parent),
            item=item,
            policy=Policy(item.rules, item.agent.rules, parent.policy),
            spend=Spend(
                item.limits, Budget(item.limits.cost_usd, parent.spend.budget), parent.spend
            ),
        )
        self.known[child.session.session_id] = child
        return child

    def _going_on(self, session_id: str, errand: Errand) -> Child | NotStarted:
        child = self.known.get(session_id)
        if child is None:
            known = ", ".join(self.known) or "none yet"
            return NotStarted(f"you have no child session {session_id!r}; yours are: {known}")
        if child.running:
            return NotStarted(f"{session_id} is still running; {RUNNING}")
        if child.item.agent.name != errand.agent:
            return NotStarted(f"{session_id} is of agent {child.item.agent.name!r}; name that one")
        child.item = evolve(child.item, recipe=evolve(child.item.recipe, prompt=errand.prompt))
        return child

    def _noted(self, child: Child, description: str, *, background: bool) -> None:
        child.running = True
        self.note(
            Subtask(
                child_session=child.session.session_id,
                agent=child.item.agent.name,
                description=description,
                background=background,
            )
        )

    def _in_background(self, child: Child, errand: Errand) -> Report:
        assert self._nursery is not None, "tools are called while the conversation lasts"
        session_id = child.session.session_id
        job = self.jobs.begin(session_id, errand.agent, errand.description)
        self._nursery.start_soon(self._run_job, child, job)
        return Report(session_id=session_id, state="running", detail=RUNNING)

    async def _run_job(self, child: Child, job: Job) -> None:
        session_id = child.session.session_id
        report = Report(session_id=session_id, state="cancelled", detail=CUT_OFF)
        try:
            report = await self._run(child, StopSignal())
        finally:
            self.jobs.end(job, report)

    async def _run_awaited(self, child: Child) -> Report:
        """While we wait for it, its waiting for a provider is ours."""
        waited = child.spend.waited_s
        try:
            return await self._run(child, StopSignal(above=self.parent.stop))
        finally:
            self.parent.spend.waited_s += child.spend.waited_s - waited

    async def _run(self, child: Child, stop: StopSignal) -> Report:
        session_id = child.session.session_id
        report = Report(session_id=session_id, state="cancelled", detail=CUT_OFF)
        try:
            with only_cause():
                async with trio.open_nursery() as nursery:
                    # Shielded from our own end, so that `stop` can end it in good order.
                    with trio.CancelScope(shield=True) as lifetime:
                        nursery.start_soon(self._hand_down, stop, lifetime)
                        report = _report(await self.sessions.run(child, self.parent, stop))
                    nursery.cancel_scope.cancel()
        finally:
            child.running = False
        return report

    async def _hand_down(self, stop: StopSignal, lifetime: trio.CancelScope) -> None:
        """When our own end comes, whatever brings it, the child's does too."""
        try:
            await trio.sleep_forever()
        finally:
            interrupted = self.parent.stop.reason == "interrupted"
            stop.ask("interrupted" if interrupted else "parent_stopped")
            lifetime.deadline = trio.current_time() + GRACE_S


def _report(attempt: Attempt) -> Report:
    answer = attempt.answer or ""
    match attempt.status:
        case "passed":
            return Report(session_id=attempt.session_id, state="completed", answer=answer)
        case "cancelled":
            detail = attempt.detail or CUT_OFF
            return Report(session_id=attempt.session_id, state="cancelled", detail=detail)
        case _:
            detail = ": ".join(part for part in (attempt.reason, attempt.detail) if part)
            return Report(
                session_id=attempt.session_id, state="error", detail=detail, answer=answer
            )
