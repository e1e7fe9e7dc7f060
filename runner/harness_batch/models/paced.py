"""A reply read in bursts: what came while we waited is decoded at one wake-up.

A piece of a reply that arrives alone costs far more for the waking than for the decoding, and
nobody watches an unattended run. So, once a reply has gone on for a while, the socket is left
alone for some milliseconds between reads, and all pieces that one read gave are one batch.
A reply that comes in one go is never held up.

httpcore hands out a reply piece by piece and does not say whether the next piece is there already
or has to be waited for. `PacedStream` knows, since it is asked to read only when nothing is left.
It then yields `DRAINED`, which `Batches` (driving the reading by hand) takes as the end of a
batch; everything else that is yielded is trio's and is passed on to trio.
"""

import enum
import ssl
from collections.abc import AsyncIterator, Awaitable, Generator, Iterable
from contextlib import suppress
from types import coroutine
from typing import Any

import httpcore
import trio

from harness_batch.models.inflate import Unpack

BURST_SECONDS = 0.04
"""How long the socket is left alone after a read that gave little."""
UNPACED_SECONDS = 0.05
"""How long a reply is read as fast as it comes."""
LITTLE_BYTES = 16 * 1024
"""A read of more is not worth waiting for company."""


class _Mark(enum.Enum):
    DRAINED = "all that was read has been handed out"


DRAINED = _Mark.DRAINED


class _AbandonedError(Exception):
    """Ends a reading that nobody wants to go on with; never leaves this file."""


@coroutine
def _report_drained() -> Generator[_Mark, None, None]:
    yield DRAINED


class PacedStream(httpcore.AsyncNetworkStream):
    """A connection's bytes; paced while a reply is read through `Batches`."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._batched_since: float | None = None
        self._last_read = LITTLE_BYTES
        self._abandoned = False

    def begin_batches(self) -> None:
        """A reply's head is in: from now on say when nothing is left, and keep the pace."""
        self._batched_since = trio.current_time()
        self._last_read = LITTLE_BYTES
        self._abandoned = False

    def end_batches(self) -> None:
        """The reply is read; the connection may be used again."""
        self._batched_since = None

    def abandon(self) -> None:
        """The reply is not wanted any more; reading it on ends at once."""
        self._abandoned = True

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        """Up to `max_bytes`, empty at the end."""
        if self._batched_since is None:
            return await self._stream.read(max_bytes, timeout)
        await _report_drained()
        if self._abandoned:
            raise _AbandonedError
        gone_on = trio.current_time() - self._batched_since
        if self._last_read < LITTLE_BYTES and gone_on > UNPACED_SECONDS:
            await trio.sleep(BURST_SECONDS)
        data = await self._stream.read(max_bytes, timeout)
        self._last_read = len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's signature
        """All of it."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        """The same connection with TLS on top."""
        return PacedStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - httpcore's signature
        """What httpcore asks of a connection, e.g. `is_readable`."""
        return self._stream.get_extra_info(info)


class PacedBackend(httpcore.AsyncNetworkBackend):
    """Opens the connections of a pool."""

    def __init__(self) -> None:
        self._trio = httpcore.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection over trio."""
        return PacedStream(
            await self._trio.connect_tcp(host, port, timeout, local_address, socket_options)
        )

    async def sleep(self, seconds: float) -> None:
        """For httpcore's own retries."""
        await trio.sleep(seconds)


class Batches:
    """The body of one reply, a list of pieces a time.

    `pieces` is the body as httpx hands it out, `network` the connection under it. One task at a
    time; no cancel scope may be open across calls.
    """

    def __init__(
        self, pieces: AsyncIterator[bytes], network: PacedStream, unpack: Unpack = list
    ) -> None:
        self._pieces = pieces
        self._unpack = unpack
        self._network = network
        self._waiting: Generator[Any, Any, bytes] | None = None
        self._ended = False
        network.begin_batches()

    async def next(self) -> list[bytes]:
        """All pieces that one read gave, unpacked; empty at the end of the body.

        Raises: httpcore's errors, and those of unpacking.
        """
        # Unpacked only now: who fails in the middle of a read leaves it unfinished for ever.
        while batch := await self._read():
            if unpacked := self._unpack(batch):
                return unpacked
        return []

    async def _read(self) -> list[bytes]:
        batch: list[bytes] = []
        while not self._ended:
            outcome = await self._step()
            if outcome is None:
                self._ended = True
                self._network.end_batches()
            elif isinstance(outcome, bytes):
                batch.append(outcome)
            elif batch:
                break
        return batch

    async def aclose(self) -> None:
        """Let go of the body; a connection with an unread rest is closed."""
        self._network.abandon()
        if self._waiting is not None:
            with suppress(_AbandonedError):
                await self._step()

    async def _step(self) -> bytes | _Mark | None:
        if self._waiting is None:
            self._waiting = _running(anext(self._pieces))
        outcome: bytes | _Mark
        try:
            outcome = await _Step(self._waiting)
        except StopAsyncIteration:
            self._waiting = None
            return None
        except BaseException:
            self._waiting = None
            raise
        if isinstance(outcome, bytes):
            self._waiting = None
        return outcome


class _Step:
    """Runs the reading on to its end (a piece) or to its next DRAINED."""

    def __init__(self, reading: Generator[Any, Any, bytes]) -> None:
        self._reading = reading

    def __await__(self) -> Generator[Any, Any, bytes | _Mark]:
        try:
            trap = self._reading.send(None)
            while trap is not DRAINED:
                try:
                    value = yield trap
                except BaseException as error:  # noqa: BLE001 - trio's, handed on to who waits for it
                    trap = self._reading.throw(error)
                else:
                    trap = self._reading.send(value)
        except StopIteration as done:
            piece: bytes = done.value
            return piece
        return _Mark.DRAINED


def _running(awaitable: Awaitable[bytes]) -> Generator[Any, Any, bytes]:
    async def piece() -> bytes:
        return await awaitable

    return piece().__await__()
