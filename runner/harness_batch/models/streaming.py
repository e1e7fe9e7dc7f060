"""A request goes out, its event stream comes back as our events, batch by batch, always bounded.

All wire formats use this loop and bring a `ReplyReader` that knows what their events mean. What
counts as a sign of life is an event that means something: comments and pings do not put off the
end of waiting.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Protocol

import trio
from attrs import define, field
from httpx_sse import ServerSentEvent

from harness_batch.errors import NetworkFailure, ProtocolBroken, ProviderError, ProviderTimeout
from harness_batch.models.http import LOST, Answer, Line
from harness_batch.models.protocol import LlmEvent, QuotasTold
from harness_batch.models.refusals import Refusal
from harness_batch.models.sse import EventDecoder

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""A reply that is longer never ends."""
TAIL_SECONDS = 5.0
"""How long usage and end mark are waited for once the finish reason is known."""


class StreamError(Exception):
    """The provider reports an error in place of an event; becomes a typed one here."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class ReplyReader(Protocol):
    """Turns the events of one reply into ours."""

    @property
    def finished(self) -> bool:
        """The end mark was read; what follows is nothing."""
        ...

    @property
    def complete(self) -> bool:
        """All content is there, be the end mark read or not."""
        ...

    def read(self, event: ServerSentEvent) -> Sequence[LlmEvent] | None:
        """What the event means; None: nothing, not even a sign of life.

        Raises: ProtocolBroken, StreamError.
        """
        ...

    def end(self) -> Sequence[LlmEvent]:
        """The stream is over: the closing events, if the reply is complete.

        Raises: NetworkFailure when it is not.
        """
        ...


@asynccontextmanager
async def exchange(
    line: Line, body: bytes, reader: ReplyReader
) -> AsyncIterator[AsyncIterator[Sequence[LlmEvent]]]:
    """Send `body`; the reply's batches are read inside.

    Raises: ProviderError, on entering or while iterating.
    """
    async with line.post(body) as answer:
        async with aclosing(_batches(line, answer, _Reading(line, reader))) as batches:
            yield batches
        if reader.finished:
            await answer.rest()


@define
class _Reading:
    """Bytes in, our events out; an error waits until the events before it were handed out."""

    line: Line
    reader: ReplyReader
    decoder: EventDecoder = field(factory=EventDecoder)
    size: int = 0
    lively: bool = False
    """The last bytes held an event that means something."""
    error: ProviderError | None = None

    def take(self, pieces: Sequence[bytes]) -> list[LlmEvent]:
        events: list[LlmEvent] = []
        self.lively = False
        try:
            for piece in pieces:
                self.size += len(piece)
                if self.size > MAX_REPLY_BYTES:
                    raise ProtocolBroken(f"the reply is longer than {MAX_REPLY_BYTES} bytes")
                self._read(self.decoder.feed(piece), events)
        except (ProviderError, StreamError) as error:
            self.error = self._typed(error)
        return events

    def end(self) -> list[LlmEvent]:
        events: list[LlmEvent] = []
        try:
            try:
                self._read(self.decoder.end(), events)
            except ProtocolBroken:
                # Not broken but cut: a whole event would have ended with a blank line.
                raise NetworkFailure("the stream ended in the middle of an event") from None
            if not self.reader.finished:
                events.extend(self.reader.end())
        except (ProviderError, StreamError) as error:
            self.error = self._typed(error)
        return events

    def _read(self, found: Sequence[ServerSentEvent], events: list[LlmEvent]) -> None:
        for event in found:
            if self.reader.finished:
                return
            meant = self.reader.read(event)
            if meant is not None:
                self.lively = True
                events.extend(meant)

    def _typed(self, error: ProviderError | StreamError) -> ProviderError:
        if isinstance(error, StreamError):
            return self.line.refused(error.refusal)
        error.args = (f"{self.line.settings.name}: {error}",)
        return error


async def _batches(
    line: Line, answer: Answer, reading: _Reading
) -> AsyncGenerator[Sequence[LlmEvent], None]:
    if answer.quotas:
        yield [QuotasTold(answer.quotas)]
    patience = line.settings.first_byte_timeout
    deadline = trio.current_time() + patience
    while not reading.reader.finished:
        pieces: list[bytes] = []
        failure: ProviderError | None = None
        with trio.move_on_at(deadline) as waiting:
            try:
                pieces = await answer.batches.next()
            except LOST as error:
                failure = line.failed(error)
        if waiting.cancelled_caught and not reading.reader.complete:
            name = line.settings.name
            failure = ProviderTimeout(f"{name}: no event for {patience:g} s")
        events = reading.take(pieces) if pieces else reading.end()
        if events:
            yield events
        if not pieces and not reading.reader.finished:
            raise _under(answer, _of_two(failure, reading.error))
        if reading.error is not None:
            raise _under(answer, reading.error)
        if reading.lively:
            patience = TAIL_SECONDS if reading.reader.complete else line.settings.idle_timeout
            patience = min(patience, line.settings.idle_timeout)
            deadline = trio.current_time() + patience


def _under(answer: Answer, error: ProviderError) -> ProviderError:
    """The error with the status that the reply began with: the row of the call shows it."""
    error.status = error.status or answer.status
    return error


def _of_two(lost: ProviderError | None, said: ProviderError | None) -> ProviderError:
    """What to raise at a premature end: the provider's own words, else how the line was lost."""
    if said is None or (lost is not None and isinstance(said, NetworkFailure)):
        return lost or NetworkFailure("the stream ended before its end mark")
    return said
