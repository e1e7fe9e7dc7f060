"""Runs a made-up world with the real engine, journal and judge; only model, tools and workspace
are fakes. Time is virtual: run it under trio's mock clock.

What must hold at every moment is watched while it runs; `Played.wrongs` is empty when it held.
"""

import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import trio
from attrs import define, evolve, field, frozen

from engine_worlds import Act, Behaviour, Calls, Part, Says, Thinks, World
from harness_batch.agents.record import Agent
from harness_batch.batch.scheduler import Scheduler
from harness_batch.config.record import ModelInfo, Prices
from harness_batch.engine.attempt import AttemptRun
from harness_batch.engine.budget import Budget
from harness_batch.engine.conversation import Agenda
from harness_batch.engine.log import AttemptLog
from harness_batch.engine.session import Place, SessionRun
from harness_batch.engine.site import Change, Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.engine.transcript import byte_length, weight
from harness_batch.events import (
    Payload,
    PermissionDecided,
    SessionCreated,
    SessionUpdated,
    ToolCallStarted,
)
from harness_batch.ids import new_id
from harness_batch.messages import (
    Completed,
    Failed,
    JsonObject,
    ModelRef,
    TokenUsage,
    Turn,
)
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.permissions.judge import Policy
from harness_batch.plan.item import Item
from harness_batch.processes import Command, CommandEnd
from harness_batch.recipe.record import Check, Recipe
from harness_batch.records import Attempt, PermissionDecision, Session
from harness_batch.records import ToolCall as ToolCallRecord
from harness_batch.rules import Ask
from harness_batch.store.journal import Journal
from harness_batch.tools.final_output import final_output
from harness_batch.tools.protocol import Tool, ToolContext, ToolResult

TOKENS_PER_BYTE = 0.3
PRICES = Prices(
    input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75")
)
NOTHING_MORE = Act(pieces=(Says("Nothing more to do."),))
SUMMARY = Act(pieces=(Says("All is well so far."),))
FOREVER = 10_000_000.0
"""Virtual seconds after which a run hangs."""


@define
class Watch:
    """The engine's log: the journal, and an eye on what was decided and spent so far."""

    journal: Journal
    wrongs: list[str]
    budgets: list[Budget]
    spends: dict[str, Spend] = field(factory=dict)
    newest_call: dict[str, ToolCallRecord] = field(factory=dict)
    decisions: list[PermissionDecision] = field(factory=list)

    def append(self, payload: Payload, session_id: str | None) -> None:
        match payload:
            case ToolCallStarted(call) if session_id is not None:
                self.newest_call[session_id] = call
            case PermissionDecided(decision):
                self.decisions.append(decision)
            case _:
                pass
        self.journal.append(payload, session_id)
        self.wrongs.extend(self._overspent())

    async def sync(self) -> None:
        """The disk is no part of the play: waiting for a thread would move the virtual time."""
        await trio.lowlevel.checkpoint()

    def _overspent(self) -> Iterator[str]:
        for budget in self.budgets:
            if budget.limit is not None and budget.spent + budget.reserved > budget.limit:
                yield f"spent {budget.spent} and reserved {budget.reserved} of {budget.limit}"
            if budget.reserved < 0:
                yield f"reserved {budget.reserved}"
        for spend in self.spends.values():
            limits = spend.limits
            for name, used, limit in (
                ("tokens", spend.tokens + spend.held_tokens, limits.tokens),
                ("steps", spend.steps, limits.steps),
                ("tool calls", spend.tool_calls, limits.tool_calls),
            ):
                if limit is not None and used > limit:
                    yield f"{used} {name} of {limit}"


@define
class FakeModel:
    """Answers each request with the next act; what is asked of it is looked at closely."""

    ref: ModelRef
    info: ModelInfo
    acts: list[Act]
    then: Act
    limit: int
    """Output tokens of a reply."""
    wrongs: list[str]
    earlier: tuple[Turn, ...] = ()
    requests: int = 0
    calls: int = 0

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[AsyncIterator[Sequence[LlmEvent]]]:
        self._look_at(request)
        self.requests += 1
        act = self.acts.pop(0) if self.acts else self.then
        size = request_size(request)
        await trio.lowlevel.checkpoint()
        async with aclosing(self._played(act, request, size)) as batches:
            yield batches

    def demand(self) -> None:
        pass

    async def renew(self) -> bool:
        await trio.lowlevel.checkpoint()
        return False

    async def aclose(self) -> None:
        """There is no connection."""

    def _look_at(self, request: ModelRequest) -> None:
        if not 0 < request.max_output_tokens <= self.limit:
            self.wrongs.append(f"{request.max_output_tokens} output tokens are asked for")
        for turn in request.turns:
            if any(not isinstance(use.state, Completed | Failed) for use in turn.tool_uses()):
                self.wrongs.append("a call without a result is sent")
        turns = tuple(request.turns)
        if self.earlier and turns[: len(self.earlier)] != self.earlier and not is_cut(turns):
            self.wrongs.append("the prefix of the request before has changed")
        self.earlier = turns

    async def _played(
        self, act: Act, request: ModelRequest, size: int
    ) -> AsyncGenerator[Sequence[LlmEvent], None]:
        events = list(self._events(act, request, size))
        if act.fault is not None:
            events = events[: act.fault_after]
        elif not act.ends:
            events = events[:-1]
        for batch in [events] if act.at_once else [[event] for event in events]:
            await trio.sleep(act.pause)
            yield batch
        if act.fault is not None:
            # A fresh one: an error object that is raised twice collects tracebacks.
            raise type(act.fault)(str(act.fault), **_details(act.fault))

    def _events(self, act: Act, request: ModelRequest, size: int) -> Iterator[LlmEvent]:
        yield ReplyStarted(http_status=200, response_id=f"rsp_{self.requests}")
        written, called = 0, False
        for number, piece in enumerate(act.pieces):
            match piece:
                case Says(text):
                    written += len(text)
                    key = f"t{number}"
                    yield from (TextStart(key), TextDelta(key, text), TextEnd(key))
                case Thinks(text):
                    written += len(text)
                    key = f"t{number}"
                    yield ReasoningStart(key)
                    yield ReasoningDelta(key, text)
                    yield ReasoningEnd(key, "signature")
                case Calls(name, arguments, whole):
                    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
                    written += len(given)
                    self.calls += 1
                    call_id = f"call_{self.calls}"
                    yield ToolInputStart(call_id, name)
                    yield ToolInputDelta(call_id, given)
                    if whole:
                        called = True
                        yield ToolCall(call_id, name, given)
        output = min(math.ceil(written * TOKENS_PER_BYTE), request.max_output_tokens)
        cut = written * TOKENS_PER_BYTE > request.max_output_tokens
        reason = act.reason or ("length" if cut else "tool_calls" if called else "stop")
        tokens = math.floor(size * TOKENS_PER_BYTE)
        usage = TokenUsage(
            input=tokens, cache_read=tokens // 3, cache_write_5m=tokens // 3, output=output
        )
        yield Finish(reason, usage if act.counted else None)


def _details(fault: Exception) -> JsonObject:
    return {name: getattr(fault, name) for name in ("retry_after", "sent") if hasattr(fault, name)}


def request_size(request: ModelRequest) -> int:
    """In bytes, as the engine estimates it."""
    specs = (byte_length(t.description) + byte_length(str(t.parameters)) for t in request.tools)
    return sum(map(weight, request.turns)) + sum(map(byte_length, request.system)) + sum(specs)


def is_cut(turns: Sequence[Turn]) -> bool:
    """Whether the request begins a conversation, asks for a summary, or comes after one."""
    if all(turn.message.role == "user" for turn in turns):
        return True
    first = turns[0].parts[0].body
    synthetic = getattr(first, "synthetic", False)
    text = " ".join(str(part.body) for turn in turns for part in turn.parts)
    return synthetic or type(first).__name__ == "Compaction" or " pruned" in text


@frozen
class FakeTool:
    """Does what its arguments say."""

    name: str
    permission: str
    session_id: str
    watch: Watch
    description: str = "Does as it is told."

    @property
    def parameters(self) -> JsonObject:
        return {
            "type": "object",
            "properties": {"target": {"type": "string"}, "behaviour": {"type": "string"}},
            "required": ["target", "behaviour"],
            "additionalProperties": False,
        }

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        if arguments["behaviour"] == "refuses":
            return ToolResult(output="that cannot be done", status="error")
        return (Ask(self.permission, arguments["target"]),)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        self._must_be_allowed()
        behaviour: Behaviour = arguments["behaviour"]
        match behaviour:
            case "slow":
                await trio.sleep(20)
            case "stuck":
                await trio.sleep(5000)
            case _:
                await trio.lowlevel.checkpoint()
        text = "line\n" * 30_000 if behaviour == "huge" else f"did {arguments['target']}"
        status = "error" if behaviour == "error" else "completed"
        return ToolResult(output=text, status="error" if status == "error" else "completed")

    def _must_be_allowed(self) -> None:
        call = self.watch.newest_call[self.session_id]
        decided = [d for d in self.watch.decisions if d.tool_call_id == call.tool_call_id]
        main = [d.action for d in decided if d.permission == self.permission]
        if main != ["allow"] or any(d.action == "deny" for d in decided):
            self.watch.wrongs.append(f"{call.tool} runs though it was {main or 'not judged'}")


@frozen
class FakeWorkspace:
    root: Path
    patch_seconds: float

    @property
    def cwd(self) -> Path:
        return self.root

    async def change(self, message: str) -> Change:
        await trio.sleep(self.patch_seconds)
        return Change(patch=b"--- a\n+++ b\n", paths=("a",), added=1)

    async def reset(self) -> None:
        """Nothing was done."""


@frozen
class FakeLauncher:
    """Every command takes a second and ends as was decided before."""

    passes: bool

    async def run(
        self,
        command: Command,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None] | None = None,
    ) -> CommandEnd:
        await trio.sleep(1)
        stdout(b"checked\n")
        return CommandEnd(exit_code=0 if self.passes else 1, timed_out=False, duration_s=1)


@frozen
class Played:
    """A run that is over."""

    sessions: tuple[Session, ...]
    attempts: tuple[Attempt, ...]
    wrongs: tuple[str, ...]
    """What did not hold at some moment."""
    journal: Path


@define
class Stage:
    """Where a world is played."""

    world: World
    folder: Path
    watch: Watch
    budget: Budget
    attempts: list[Attempt] = field(factory=list)

    async def play(self) -> list[Session]:
        items = [_item(number, part) for number, part in enumerate(self.world.parts)]
        scheduler = Scheduler(
            jobs=self.world.jobs,
            run_one=self._run_one,
            skip=self._skip,
            max_failures=self.world.max_failures,
            out_of_money=lambda: self.budget.exhausted,
            running_low=self.budget.running_low,
        )
        with trio.fail_after(FOREVER):
            async with trio.open_nursery() as nursery:
                if self.world.stop is not None:
                    nursery.start_soon(_stop, scheduler, *self.world.stop)
                ended = await scheduler.run(items)
                nursery.cancel_scope.cancel()
        return ended

    def _session(self, item: Item) -> Session:
        session = Session(
            session_id=new_id("ses"),
            run_id=self.watch.journal.run_id,
            item_key=item.key,
            item_digest=item.digest,
            recipe=item.recipe.name,
            agent=item.agent.name,
            model=str(item.models[0]),
        )
        self.watch.append(SessionCreated(session), session.session_id)
        return session

    def _skip(self, item: Item, reason: str) -> Session:
        return self._ended(evolve(self._session(item), status="skipped", reason="not_admitted"))

    def _ended(self, session: Session) -> Session:
        self.watch.append(SessionUpdated(session), session.session_id)
        return session

    async def _run_one(self, item: Item, stop: StopSignal) -> Session:
        part = self.world.parts[int(item.key)]
        session = self._session(item)
        budget = Budget(item.limits.cost_usd, self.budget)
        spend = Spend(item.limits, budget)
        self.watch.budgets.append(budget)
        self.watch.spends[session.session_id] = spend
        attempt = Attempt(
            attempt_id=new_id("att"), session_id=session.session_id, n=1, started_at="2026"
        )
        stop.begin(item.limits)
        first = AttemptRun(
            agenda=self._agenda(item, part, session),
            attempt=attempt,
            log=AttemptLog(self.watch, session.session_id, attempt.attempt_id),
            spend=spend,
            stop=stop,
            folder=self.folder,
            write=lambda path, data: None,
        )
        run = SessionRun(
            current=first,
            open_site=partial(_site, self.folder, part),
            place=lambda n: Place(self.folder, self.folder),
        )
        ended = await run.run()
        self.attempts.append(ended)
        status = evolve(session, status=ended.status, reason=ended.reason, attempts=1)
        return self._ended(status)

    def _agenda(self, item: Item, part: Part, session: Session) -> Agenda:
        info = ModelInfo(context=part.context, prices=PRICES)
        wrongs, limit = self.watch.wrongs, item.limits.output_tokens or 0
        main = FakeModel(item.models[0], info, list(part.acts), NOTHING_MORE, limit, wrongs)
        small = FakeModel(
            ModelRef("fake", "small"), info, list(part.small_acts), SUMMARY, limit, wrongs
        )
        return Agenda(
            item=item,
            model=main,
            small_model=small,
            tools=tuple(_tools(session.session_id, self.watch, part)),
            policy=Policy(item.rules, item.agent.rules),
            notes=(),
            date="2026-01-01",
            platform="Linux",
            outputs=self.folder,
        )


def _tools(session_id: str, watch: Watch, part: Part) -> Iterator[Tool]:
    for name, permission in (
        ("look", "read"),
        ("change", "edit"),
        ("shell", "bash"),
        ("hidden", "mcp"),
    ):
        yield FakeTool(name, permission, session_id, watch)
    if part.schema:
        schema = {"properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
        yield final_output({"type": "object", "additionalProperties": False, **schema})


def _item(number: int, part: Part) -> Item:
    checks = () if part.check_passes is None else (Check(name="check", run="true"),)
    recipe = Recipe(
        file=Path("r.yaml"),
        name=f"item{number}",
        prompt="Do it.",
        on_denial=part.on_denial,
        checks=checks,
        retry=part.retry,
        response_schema={"type": "object"} if part.schema else None,
    )
    return Item(
        key=str(number),
        folder=str(number),
        digest="d",
        recipe=recipe,
        params={},
        matrix={},
        agent=Agent(name="build", prompt="You are an agent."),
        models=(ModelRef("fake", "large"),),
        rules=part.rules,
        limits=part.limits.with_defaults(),
        repo="/",
        ref="HEAD",
        base_sha=None,
    )


@asynccontextmanager
async def _site(folder: Path, part: Part) -> AsyncIterator[Site]:
    await trio.lowlevel.checkpoint()
    workspace = FakeWorkspace(folder, part.patch_seconds)
    yield Site(workspace, FakeLauncher(part.check_passes is not False))


async def _stop(scheduler: Scheduler, seconds: float, reason: str) -> None:
    await trio.sleep(seconds)
    scheduler.stop("interrupted" if reason == "interrupted" else "max_time")


async def play(world: World, folder: Path, journal: Journal) -> Played:
    """Play it. Raises: TooSlowError when it hangs."""
    budget = Budget(world.max_cost)
    wrongs: list[str] = []
    stage = Stage(world, folder, Watch(journal, wrongs, [budget]), budget)
    sessions = await stage.play()
    if any(b.reserved for b in stage.watch.budgets):
        wrongs.append("money is held though nothing is under way")
    if any(spend.held_tokens for spend in stage.watch.spends.values()):
        wrongs.append("tokens are held though nothing is under way")
    return Played(tuple(sessions), tuple(stage.attempts), tuple(wrongs), journal.path)
