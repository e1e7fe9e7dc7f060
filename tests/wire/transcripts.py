"""Transcripts, requests and connections for tests of models."""

from collections.abc import Sequence

from harness_batch.config.record import ModelInfo, ProviderSettings
from harness_batch.messages import (
    Completed,
    Message,
    ModelRef,
    Part,
    PartBody,
    Reasoning,
    Role,
    Text,
    ToolState,
    ToolUse,
    Turn,
)
from harness_batch.models.protocol import (
    LlmEvent,
    Model,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolSpec,
)
from harness_batch.models.table import connect

BASH = ToolSpec(
    name="bash",
    description="Runs a shell command.",
    parameters={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
)
READ = ToolSpec(
    name="read",
    description="Reads a file.",
    parameters={"type": "object", "properties": {"file_path": {"type": "string"}}},
)


def turn(number: int, role: Role, *bodies: PartBody) -> Turn:
    """A turn whose ids come from its number."""
    message_id = f"msg_{number}"
    head = Message(
        id=message_id,
        session_id="ses_1",
        attempt_id="att_1",
        role=role,
        created_at="2030-01-01T00:00:00Z",
    )
    parts = (
        Part(id=f"prt_{number}_{i}", message_id=message_id, session_id="ses_1", idx=i, body=body)
        for i, body in enumerate(bodies)
    )
    return Turn(head, tuple(parts))


def user(number: int, text: str) -> Turn:
    """What the user says."""
    return turn(number, "user", Text(text=text))


def request(*turns: Turn, tools: tuple[ToolSpec, ...] = (BASH, READ)) -> ModelRequest:
    """A request with a system prompt of two blocks."""
    return ModelRequest(
        system=("You work in a repository.", "Be brief."),
        turns=turns or (user(0, "Begin."),),
        tools=tools,
        max_output_tokens=1000,
    )


def done(title: str, output: str) -> ToolState:
    """A finished tool call."""
    return Completed(input={"command": title}, title=title, output=output)


def open_model(kind: str, url: str, **settings: object) -> Model:
    """A connection to a test server; `kind` is a provider type."""
    given: dict[str, object] = {
        "api_key": "sk-test",
        "connect_timeout": 5.0,
        "first_byte_timeout": 5.0,
        "idle_timeout": 5.0,
        "models": {"m": ModelInfo(context=100_000, output=8_000)},
        **settings,
    }
    return connect(
        ModelRef("mine", "m"),
        ProviderSettings(name="mine", type=kind, base_url=url, **given),  # type: ignore[arg-type]  # settings of tests
    )


async def replies(model: Model, asked: ModelRequest) -> list[LlmEvent]:
    """All events of one reply."""
    events: list[LlmEvent] = []
    async with model.stream(asked) as batches:
        async for batch in batches:
            events.extend(batch)
    return events


def heard(events: Sequence[LlmEvent], number: int, output: str = "ok") -> Turn:
    """The reply as the turn that an engine would make of it, every call answered with `output`."""
    bodies: list[PartBody] = []
    pieces: dict[str, list[str]] = {}
    for event in events:
        match event:
            case TextDelta(id=key, text=text) | ReasoningDelta(id=key, text=text):
                pieces.setdefault(key, []).append(text)
            case TextEnd(id=key):
                bodies.append(Text(text="".join(pieces.pop(key, []))))
            case ReasoningEnd(id=key, signature=signature):
                bodies.append(Reasoning(text="".join(pieces.pop(key, [])), signature=signature))
            case ToolCall(call_id=call_id, name=name, sealed=sealed):
                state = done(name, output)
                bodies.append(ToolUse(call_id=call_id, name=name, state=state, sealed=sealed))
            case _:
                pass
    return turn(number, "assistant", *bodies)
