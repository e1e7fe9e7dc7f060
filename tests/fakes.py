"""A session without network, processes or disk: models, tools and logs that behave, on any clock.

`Studio` puts an attempt together from the engine's real parts and these fakes; `faults(events)`
names what a journal must never show.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import trio
from attrs import define, evolve, field, frozen

from harness_batch import records
from harness_batch.agents.record import Agent
from harness_batch.config.record import ModelInfo
from harness_batch.engine.attempt import AttemptRun
from harness_batch.engine.budget import Budget
from harness_batch.engine.conversation import Agenda
from harness_batch.engine.log import AttemptLog, timestamp
from harness_batch.engine.session import Place, SessionRun
from harness_batch.engine.site import Change, Site
from harness_batch.engine.spend import Spend
from harness_batch.engine.stop import StopSignal
from harness_batch.errors import ProviderError
from harness_batch.events import (
    MessageCreated,
    MessageUpdated,
    ModelCallClosed,
    ModelCallOpened,
    PartCreated,
    PartUpdated,
    Payload,
    PermissionDecided,
    SessionFinished,
    ToolCallFinished,
    ToolCallStarted,
)
from harness_batch.limits import Limits
from harness_batch.messages import (
    JsonObject,
    ModelRef,
    Part,
    Pending,
    Running,
    TokenUsage,
    ToolUse,
)
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    ModelRequest,
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
)
from harness_batch.permissions.judge import Policy
from harness_batch.plan.item import Item
from harness_batch.processes import Command, CommandEnd
from harness_batch.recipe.record import Recipe, WorkspaceWish
from harness_batch.rules import Ask, Rule
from harness_batch.tools.protocol import ToolContext, ToolResult


@frozen
class Pause:
    """The provider takes its time."""

    seconds: float


Beat: TypeAlias = LlmEvent | Pause | ProviderError
"""What a reply does next; an error ends it."""
Said: TypeAlias = Sequence[Beat]

USAGE = TokenUsage(input=100, output=10)


def text(words: str, key: str = "t") -> list[Beat]:
    """A text block."""
    return [TextStart(key), TextDelta(key, words), TextEnd(key)]


def call(number: int, name: str = "work", arguments: str = "{}") -> list[Beat]:
    """A tool call with an id of its own."""
    key = f"call_{number}"
    return [ToolInputStart(key, name), ToolCall(key, name, arguments)]


def finish(reason: Any = "stop", usage: TokenUsage | None = USAGE) -> Finish:
    """The end of a reply."""
    return Finish(reason, usage)


ANSWER: Said = (ReplyStarted(200), *text("Done."), finish())


@define
class FakeModel:
    """Plays one list of beats a request; past the script it answers and ends."""

    script: Sequence[Said]
    requests: list[ModelRequest] = field(factory=list)
    asked_at: list[float] = field(factory=list)
    read_at: list[float] = field(factory=list)
    """When the reader had taken all of a reply."""
    info: ModelInfo = field(factory=ModelInfo)
    ref: ModelRef = field(factory=lambda: ModelRef("fake", "m"))
    renewals: int = 0
    """How often there is another credential to try."""

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[AsyncIterator[Sequence[LlmEvent]]]:
        """Send one request."""
        turn = len(self.requests)
        # The engine's list of turns goes on growing.
        self.requests.append(evolve(request, turns=tuple(request.turns)))
        self.asked_at.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        yield self._beats(self.script[turn] if turn < len(self.script) else ANSWER)

    async def _beats(self, beats: Said) -> AsyncIterator[Sequence[LlmEvent]]:
        for beat in beats:
            match beat:
                case Pause(seconds=seconds):
                    await trio.sleep(seconds)
                case ProviderError():
                    raise beat
                case _:
                    await trio.lowlevel.checkpoint()
                    yield (beat,)
        self.read_at.append(trio.current_time())

    def demand(self) -> None:
        pass

    async def renew(self) -> bool:
        await trio.lowlevel.checkpoint()
        self.renewals -= 1
        return self.renewals >= 0

    async def aclose(self) -> None:
        """Nothing is open."""


@define
class FakeTool:
    """Works for as long as it is told, and remembers when; `crash` is a bug in it."""

    name: str = "work"
    permission: str = "bash"
    description: str = "Works."
    parameters: JsonObject = field(
        factory=lambda: {
            "type": "object",
            "properties": {
                "seconds": {"type": "number"},
                "pattern": {"type": "string"},
                "crash": {"type": "boolean"},
                "n": {"type": "integer"},
            },
            "additionalProperties": False,
        }
    )
    began: list[float] = field(factory=list)
    ended: list[float] = field(factory=list)
    ran: list[JsonObject] = field(factory=list)

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """One thing, which the arguments name."""
        del context
        return (Ask(self.permission, arguments.get("pattern", "work")),)

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Sleep; then say so."""
        del context, call_id
        self.ran.append(arguments)
        self.began.append(trio.current_time())
        if arguments.get("crash"):
            raise RuntimeError("a bug in the tool")
        await trio.sleep(arguments.get("seconds", 0))
        self.ended.append(trio.current_time())
        return ToolResult(output=f"worked {len(self.ended)}", title="work")


@define
class MemoryLog:
    """Keeps all events; `broken_at`: the disk fails at that event."""

    payloads: list[Payload] = field(factory=list)
    times: list[float] = field(factory=list)
    broken_at: int | None = None
    error: Exception | None = None

    def append(self, payload: Payload, session_id: str | None) -> None:
        """Take an event."""
        del session_id
        if self.broken_at is not None and len(self.payloads) >= self.broken_at:
            assert self.error is not None
            raise self.error
        self.payloads.append(payload)
        self.times.append(trio.current_time())

    async def sync(self) -> None:
        """There is no disk to wait for."""
        await trio.lowlevel.checkpoint()

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind."""
        return [payload for payload in self.payloads if isinstance(payload, kind)]

    def parts(self) -> list[Part]:
        """Each part as it is at the end."""
        last: dict[str, Part] = {}
        for payload in self.payloads:
            if isinstance(payload, PartCreated | PartUpdated):
                last[payload.part.id] = payload.part
        return list(last.values())


@frozen
class FakeWorkspace:
    """A folder; its change is whatever the tools did."""

    root: Path
    tool: FakeTool

    @property
    def cwd(self) -> Path:
        """The top."""
        return self.root

    async def change(self, message: str) -> Change:
        """A patch as soon as a tool ran."""
        await trio.lowlevel.checkpoint()
        if not self.tool.ran:
            return Change(patch=None)
        return Change(patch=f"{message}: {len(self.tool.ran)}".encode(), paths=("a",))

    async def reset(self) -> None:
        """Forget what the tools did."""
        await trio.lowlevel.checkpoint()
        self.tool.ran.clear()


class FakeLauncher:
    """A command is the number of seconds that it takes, and `fails` behind it when it does."""

    async def run(self, command: Command, stdout: Any, stderr: Any = None) -> CommandEnd:
        """Wait for it."""
        del stderr
        time, _, fate = command.argv[-1].partition(" ")
        seconds = float(time)
        with trio.move_on_after(command.timeout or float("inf")) as clock:
            await trio.sleep(seconds)
        stdout(b"ready\n")
        late = clock.cancelled_caught
        code = None if late else int(fate == "fails")
        return CommandEnd(exit_code=code, timed_out=late, duration_s=seconds)


@define
class Studio:
    """One attempt on fakes: set what matters, `run`, look at what was logged and written."""

    folder: Path
    script: Sequence[Said]
    rules: tuple[Rule, ...] = (Rule("bash", "work", "allow", "test"),)
    limits: Limits = field(factory=lambda: Limits(steps=50))
    recipe: JsonObject = field(factory=dict)
    model: FakeModel = field(init=False)
    tool: FakeTool = field(factory=FakeTool)
    log: MemoryLog = field(factory=MemoryLog)
    stop: StopSignal = field(factory=StopSignal)
    written: dict[str, bytes] = field(factory=dict)
    spend: Spend = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.model = FakeModel(self.script)
        self.spend = Spend(self.limits, Budget(self.limits.cost_usd))

    async def run(self) -> records.Attempt:
        """The attempt, to its end."""
        log = AttemptLog(self.log, "ses_1", "att_1")
        self.stop.begin(self.limits)
        attempt = records.Attempt(
            attempt_id="att_1", session_id="ses_1", n=1, started_at=timestamp()
        )
        first = AttemptRun(
            agenda=self._agenda(),
            attempt=attempt,
            log=log,
            spend=self.spend,
            stop=self.stop,
            folder=self.folder,
            write=lambda path, data: self.written.__setitem__(path.name, data),
            setup=tuple(self.recipe.get("workspace", WorkspaceWish()).setup),
        )
        return await SessionRun(current=first, open_site=self._site, place=self._place).run()

    def _place(self, n: int) -> Place:
        return Place(self.folder / str(n), self.folder)

    @asynccontextmanager
    async def _site(self) -> AsyncIterator[Site]:
        yield Site(FakeWorkspace(self.folder, self.tool), FakeLauncher())

    def _agenda(self) -> Agenda:
        item = Item(
            key="fake",
            folder="fake",
            digest="0",
            recipe=Recipe(
                file=self.folder / "fake.yaml", name="fake", prompt="Work.", **self.recipe
            ),
            params={},
            matrix={},
            agent=Agent(name="build"),
            models=(self.model.ref,),
            rules=self.rules,
            limits=self.limits,
            repo=str(self.folder),
            ref="HEAD",
            base_sha=None,
        )
        return Agenda(
            item=item,
            model=self.model,
            small_model=self.model,
            tools=(self.tool,),
            policy=Policy(self.rules),
            notes=(),
            date="2030-01-01",
            platform="Linux",
            outputs=self.folder,
        )


def faults(log: MemoryLog, ran: int) -> list[str]:
    """What a finished attempt's events must never show. `ran`: how often tools really ran."""
    return [
        *_pairs(log, ModelCallOpened, ModelCallClosed, "model_call_id", "call"),
        *_pairs(log, ToolCallStarted, ToolCallFinished, "tool_call_id", "call"),
        *_messages(log),
        *_permissions(log, ran),
        *_parts(log),
    ]


def _pairs(log: MemoryLog, first: Any, second: Any, key: str, record: str) -> Iterator[str]:
    opened = [getattr(getattr(event, record), key) for event in log.of(first)]
    closed = [getattr(getattr(event, record), key) for event in log.of(second)]
    if sorted(opened) != sorted(closed) or len(set(opened)) != len(opened):
        yield f"{len(opened)} {first.__name__}, {len(closed)} {second.__name__}"
    if any(getattr(event, record).duration_s is None for event in log.of(second)):
        yield f"a {second.__name__} without its duration"


def _messages(log: MemoryLog) -> Iterator[str]:
    created = {event.message.id for event in log.of(MessageCreated)}
    updated = {event.message.id: event.message for event in log.of(MessageUpdated)}
    if created != set(updated):
        yield f"{len(created)} messages begun, {len(updated)} ended"
    for message in updated.values():
        if message.role == "assistant" and not (message.finish_reason or message.error):
            yield "a reply with neither reason nor error"
    if not isinstance(log.payloads[-1], SessionFinished):
        yield "the attempt's end is not the last event"


def _permissions(log: MemoryLog, ran: int) -> Iterator[str]:
    allowed: set[str] = set()
    denied: set[str] = set()
    for event in log.of(PermissionDecided):
        one = event.decision
        (allowed if one.action == "allow" else denied).add(one.tool_call_id)
    ended = [event.call for event in log.of(ToolCallFinished)]
    completed = {one.tool_call_id for one in ended if one.status == "completed"}
    if not completed <= allowed - denied:
        yield "a tool ran without an allow"
    if ran > len(allowed - denied):
        yield f"tools ran {ran} times, allowed were {len(allowed - denied)}"
    if {one.tool_call_id for one in ended if one.status == "denied"} & (allowed - denied):
        yield "a call that every rule allowed was denied"


def _parts(log: MemoryLog) -> Iterator[str]:
    for part in log.parts():
        if isinstance(part.body, ToolUse) and isinstance(part.body.state, Pending | Running):
            yield f"a tool part is still {type(part.body.state).__name__.lower()}"
