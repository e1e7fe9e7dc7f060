"""Children without models: sessions that do what their prompt says, and delegates in memory.

A prompt is `answer WORDS`, `fail REASON`, `wait SECONDS`, `crash`; a sub-recipe's is its `do`.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from attrs import define, evolve, field

from fakes import FakeLauncher, FakeTool, FakeWorkspace, MemoryLog
from harness_batch.agents.record import Agent
from harness_batch.engine.budget import Budget
from harness_batch.engine.children import Children
from harness_batch.engine.family import Child, Parent
from harness_batch.engine.jobs import Jobs
from harness_batch.engine.log import AttemptLog
from harness_batch.engine.site import Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.errors import StorageError
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject, ModelRef
from harness_batch.permissions.judge import Policy
from harness_batch.plan.item import Item
from harness_batch.recipe.record import Recipe
from harness_batch.records import Attempt, Session
from harness_batch.rules import Rule
from harness_batch.tools.delegates import Errand, NotStarted, Report

AGENTS = {"helper": "Helps.", "other": "Helps otherwise.", "barred": "May not."}
RULES = tuple(
    Rule("task", name, "allow", "recipe:r:1") for name in ("helper", "other", "do", "ghost")
)


@define
class FakeChildSessions:
    """`ChildSessions` that never asks a model."""

    events: list[str] = field(factory=list)
    """`begun ID`, `ended ID STATUS`, in order."""

    def agents(self, parent: Item) -> Mapping[str, str]:
        del parent
        return AGENTS

    def of_agent(self, parent: Item, agent: str, prompt: str) -> Item | str:
        if prompt.startswith("never"):
            return "its model is not granted"
        recipe = evolve(parent.recipe, prompt=prompt)
        return evolve(parent, recipe=recipe, agent=Agent(name=agent))

    def of_recipe(self, parent: Item, name: str, arguments: JsonObject) -> Item | str:
        del name
        return evolve(parent, recipe=evolve(parent.recipe, prompt=arguments["do"]))

    def begin(self, item: Item, parent: Parent) -> Session:
        session_id = f"ses_{len(self.events)}"
        self.events.append(f"begun {session_id}")
        return Session(
            session_id=session_id,
            run_id="run_1",
            item_key=item.key,
            item_digest="0",
            recipe="r",
            agent=item.agent.name,
            model="fake/m",
            parent_id=parent.session_id,
            depth=parent.depth + 1,
        )

    async def run(self, child: Child, parent: Parent, stop: StopSignal) -> Attempt:
        del parent
        stop.begin(Limits())
        attempt = Attempt(
            attempt_id="att_1", session_id=child.session.session_id, n=1, started_at="2030"
        )
        with stop.scope() as scope:
            ended = await self._does(child.item.recipe.prompt, attempt)
        if scope.cancelled_caught:
            ended = evolve(attempt, status="cancelled", reason=stop.reason, detail="was stopped")
        # Writing down how it ended takes its time, and must not be cut.
        await trio.sleep(0.1)
        self.events.append(f"ended {attempt.session_id} {ended.status} {ended.reason}")
        return ended

    async def _does(self, prompt: str, attempt: Attempt) -> Attempt:
        word, _, rest = prompt.partition(" ")
        match word:
            case "fail":
                return evolve(attempt, status="failed", reason=rest, detail="so it is")
            case "wait":
                await trio.sleep(float(rest))
                return evolve(attempt, status="passed", answer=f"waited {rest}")
            case "crash":
                raise StorageError("the disk is full")
            case _:
                return evolve(attempt, status="passed", answer=rest)


def item_of(folder: Path) -> Item:
    """A parent's."""
    return Item(
        key="r",
        folder="r",
        digest="0",
        recipe=Recipe(file=folder / "r.yaml", name="r", prompt="Lead."),
        params={},
        matrix={},
        agent=Agent(name="build"),
        models=(ModelRef("fake", "m"),),
        rules=RULES,
        limits=Limits(),
        repo=str(folder),
        ref="HEAD",
        base_sha=None,
    )


def children_of(
    folder: Path,
    sessions: FakeChildSessions,
    *,
    log: MemoryLog | None = None,
    depth: int = 0,
    stop: StopSignal | None = None,
    item: Item | None = None,
) -> Children:
    """The engine's own delegates, on fake sessions."""
    item = item or item_of(folder)
    parent = Parent(
        session_id="ses_top",
        depth=depth,
        item=item,
        policy=Policy(item.rules),
        site=Site(FakeWorkspace(folder, FakeTool()), FakeLauncher()),
        spend=Spend(item.limits, Budget(None)),
        stop=stop or StopSignal(),
    )
    jobs = Jobs(AttemptLog(log or MemoryLog(), "ses_top", "att_top"))
    return Children(parent=parent, sessions=sessions, jobs=jobs)


@define
class MemoryDelegates:
    """`Delegates` that answer at once."""

    sent: list[Errand] = field(factory=list)
    recipes: list[tuple[str, JsonObject]] = field(factory=list)
    _of: dict[str, str] = field(factory=dict)
    """Agent by session id."""

    def agents(self) -> Mapping[str, str]:
        return {name: about for name, about in AGENTS.items() if name != "barred"}

    def unfit(self, agent: str) -> str | None:
        return None if agent in AGENTS else f"there is no agent {agent!r} that can be a subagent"

    async def send(self, errand: Errand) -> Report | NotStarted:
        await trio.lowlevel.checkpoint()
        if errand.prompt.startswith("never"):
            return NotStarted("its model is not granted")
        session_id = errand.session or f"ses_{len(self._of)}"
        if errand.session is not None and errand.session not in self._of:
            return NotStarted(f"you have no child session {errand.session!r}")
        if self._of.setdefault(session_id, errand.agent) != errand.agent:
            return NotStarted(f"{session_id} is of agent {self._of[session_id]!r}")
        self.sent.append(errand)
        if errand.background:
            return Report(session_id=session_id, state="running", detail="later")
        return _played(session_id, errand.prompt)

    async def run_recipe(self, name: str, arguments: JsonObject) -> Report | NotStarted:
        await trio.lowlevel.checkpoint()
        self.recipes.append((name, arguments))
        return _played("ses_recipe", arguments["do"])


def _played(session_id: str, prompt: str) -> Report:
    word, _, rest = prompt.partition(" ")
    if word == "fail":
        return Report(session_id=session_id, state="error", detail=f"{rest}: so it is")
    return Report(session_id=session_id, state="completed", answer=rest)


@asynccontextmanager
async def engine_delegates(folder: Path) -> AsyncIterator[Children]:
    """The real ones, while a conversation lasts."""
    children = children_of(folder, FakeChildSessions())
    async with children.at_work():
        yield children


@asynccontextmanager
async def memory_delegates(folder: Path) -> AsyncIterator[MemoryDelegates]:
    """The fake ones."""
    del folder
    yield MemoryDelegates()
