"""One HTTP/1.1 request and its answer over one connection, read piece by piece."""

from typing import Literal

import h11
import trio
from attrs import define, field

MAX_HEAD_BYTES = 64 * 1024
_PIECE = 64 * 1024


@define
class Exchange:
    """A GET under way. Methods raise h11.RemoteProtocolError and trio.BrokenResourceError."""

    stream: trio.abc.Stream
    _connection: h11.Connection = field(
        factory=lambda: h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
    )

    async def get(self, target: str, headers: list[tuple[str, str]]) -> h11.Response:
        """Send the request; the head of the final answer."""
        sent = self._connection.send(h11.Request(method="GET", target=target, headers=headers))
        await self.stream.send_all(
            (sent or b"") + (self._connection.send(h11.EndOfMessage()) or b"")
        )
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("the connection was closed before an answer")

    async def more(self) -> bytes:
        """The next piece of the body; empty at its end."""
        while True:
            event = await self._event()
            if not isinstance(event, h11.Data):
                return b""
            if event.data:
                return bytes(event.data)

    async def _event(self) -> h11.Event | Literal["closed"]:
        while True:
            event = self._connection.next_event()
            if isinstance(event, h11.Event):
                return event
            if event is not h11.NEED_DATA:
                return "closed"
            self._connection.receive_data(bytes(await self.stream.receive_some(_PIECE)))
