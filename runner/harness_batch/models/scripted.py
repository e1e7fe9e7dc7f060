"""A model that reads its replies from a file: for demonstrations, tests and dry runs. It is free.

The step is the number of assistant turns so far, so a script works for any number of sessions at
once and goes on where a resumed session stands. Past its end it has nothing more to do.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import trio
from attrs import evolve

from harness_batch.config.record import ModelInfo, ProviderSettings
from harness_batch.messages import (
    Completed,
    Failed,
    JsonObject,
    ModelRef,
    Reasoning,
    Text,
    TokenUsage,
    ToolUse,
    Turn,
)
from harness_batch.models.encoded import OncePerTurn, encode
from harness_batch.models.pricing import FREE
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    ModelRequest,
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.models.script_file import ScriptedStep, read_script

AT_THE_END = ScriptedStep("Nothing more to do.", ())
CHARACTERS_PER_TOKEN = 4
TEXT_DELTAS = 3
"""In how many pieces a text is streamed."""


class ScriptedModel:
    """One session's reading of a script; `ref` names the file, not this machine's folder of it."""

    def __init__(self, ref: ModelRef, settings: ProviderSettings) -> None:
        """Raises: FaultyInput when the file is not a script."""
        self.ref = evolve(ref, model=Path(ref.model).name)
        self.info = settings.models.get(ref.model, ModelInfo(prices=FREE))
        self._steps = read_script(Path(ref.model))
        self._characters = OncePerTurn(characters_in)

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[AsyncIterator[Sequence[LlmEvent]]]:
        """The next reply of the script."""
        await trio.lowlevel.checkpoint()
        number = sum(turn.message.role == "assistant" for turn in request.turns)
        step = self._steps[number] if number < len(self._steps) else AT_THE_END
        async with aclosing(_reply(step, number, self._input_tokens(request))) as batches:
            yield batches

    def demand(self) -> None:
        """A script needs no key."""

    async def renew(self) -> bool:
        """There is none."""
        await trio.lowlevel.checkpoint()
        return False

    async def aclose(self) -> None:
        """There is no connection."""

    def _input_tokens(self, request: ModelRequest) -> int:
        fixed = sum(map(len, request.system)) + sum(
            len(tool.name) + len(tool.description) + len(encode(tool.parameters))
            for tool in request.tools
        )
        return (fixed + sum(self._characters.of(request.turns))) // CHARACTERS_PER_TOKEN


def characters_in(turn: Turn) -> int:
    """How much of a turn a model would read."""
    size = 0
    for part in turn.parts:
        match part.body:
            case Text(text=text) | Reasoning(text=text):
                size += len(text)
            case ToolUse(state=Completed(input=given, output=said)):
                size += len(encode(given)) + len(said)
            case ToolUse(state=Failed(input=given, error=said)):
                size += len(encode(given)) + len(said)
            case _:
                pass
    return size


async def _reply(
    step: ScriptedStep, number: int, input_tokens: int
) -> AsyncGenerator[Sequence[LlmEvent], None]:
    yield [ReplyStarted(response_model="scripted")]
    if step.text:
        yield [TextStart("block_0")]
        size = -(-len(step.text) // TEXT_DELTAS)
        for begin in range(0, len(step.text), size):
            await trio.lowlevel.checkpoint()
            yield [TextDelta("block_0", step.text[begin : begin + size])]
        yield [TextEnd("block_0")]
    written = len(step.text)
    for position, call in enumerate(step.calls):
        await trio.lowlevel.checkpoint()
        call_id, arguments = f"call_{number}_{position}", encode(call.arguments).decode()
        written += len(call.name) + len(arguments)
        yield [
            ToolInputStart(call_id, call.name),
            ToolInputDelta(call_id, arguments),
            ToolCall(call_id, call.name, arguments),
        ]
    usage = TokenUsage(input=input_tokens, output=-(-written // CHARACTERS_PER_TOKEN))
    raw: JsonObject = {"input_tokens": usage.input, "output_tokens": usage.output}
    yield [Finish("tool_calls" if step.calls else "stop", usage, raw)]
