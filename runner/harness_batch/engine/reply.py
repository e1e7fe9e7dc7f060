"""One reply being read while its tool calls run: two tasks joined by a channel."""

import math
from collections.abc import Callable
from decimal import Decimal

import trio
from attrs import define, field

from harness_batch.engine.admission import Slot
from harness_batch.engine.stream_parts import StreamParts
from harness_batch.engine.tool_calls import ToolRunner
from harness_batch.engine.transcript import Draft
from harness_batch.errors import NetworkFailure, ProviderError, only_cause
from harness_batch.messages import Part
from harness_batch.models.protocol import Model, ModelRequest, ToolCall


@define
class Reply:
    """A reader and an executor.

    The stream is read on while a tool runs, so that a slow tool neither stalls the connection nor
    trips the server's own timeout.
    """

    model: Model
    runner: ToolRunner
    draft: Draft
    tools_off: bool
    on_end: Callable[[StreamParts, ProviderError | None], Decimal | None]
    """Called when the provider has said its last word, tools may run on; returns the cost."""
    slot: Slot
    parts: StreamParts = field(init=False)
    error: ProviderError | None = None
    executed: bool = False
    is_read: bool = False
    usd: Decimal | None = None
    _send: trio.MemorySendChannel[tuple[ToolCall, Part]] = field(init=False)
    _receive: trio.MemoryReceiveChannel[tuple[ToolCall, Part]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        # Unbounded: the model's own output limit bounds it, and the reader must never wait.
        self._send, self._receive = trio.open_memory_channel(math.inf)
        self.parts = StreamParts(self.draft, self._hand_on)

    async def read(self, request: ModelRequest) -> None:
        """Read to the end; what the provider did wrong is in `error` afterwards."""
        with only_cause():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._execute)
                async with self._send:
                    try:
                        await self._take_all(request)
                    except ProviderError as error:
                        self.error = error
                    self.is_read = True
                    self.usd = self.on_end(self.parts, self.error)

    async def _take_all(self, request: ModelRequest) -> None:
        async with self.model.stream(request) as batches:
            async for batch in batches:
                self.parts.take(batch)
                if self.parts.first_at is None:
                    self._note_beginning()
        if self.parts.finish is None:
            raise NetworkFailure("the stream ended before its end mark")

    def _note_beginning(self) -> None:
        if self.parts.started is not None or self.parts.consumed:
            self.slot.begun()
        if self.parts.consumed:
            self.parts.first_at = trio.current_time()

    async def _execute(self) -> None:
        async for call, part in self._receive:
            self.executed = True
            await self.runner.answer(call, part, self.draft, tools_off=self.tools_off)

    def _hand_on(self, call: ToolCall, part: Part) -> None:
        self._send.send_nowait((call, part))
