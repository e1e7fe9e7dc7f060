"""What a proxy's client asks for, one plain HTTP request passed on, and how it is refused."""

import re
from typing import Protocol

import h11
import trio
from attrs import define, frozen

from harness_batch.permissions.web_url import WebUrl, normal_host, parse_url

PIECE = 64 * 1024
SHOWN = 200
"""Characters of a client's words that are repeated to anybody."""
LINGER_SECONDS = 0.5
LINGER_PIECES = 64
HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization"),
        *(b"proxy-connection", b"te", b"trailer", b"upgrade", b"host"),
    }
)
"""Between two neighbours only. Host is said anew: the URL is what was checked."""


class Line(Protocol):
    """An end of a connection."""

    async def receive_some(self, most: int) -> bytes:
        """At most so many bytes; empty at the end."""
        ...

    async def send_all(self, data: bytes) -> None:
        """All of it."""
        ...


@define
class Refusal(Exception):
    """The status and the words that a client gets instead of a connection."""

    status: int
    reason: str


@frozen
class Asked:
    """Where a client wants to go; with `request` what it wants there, else a tunnel."""

    host: str
    port: int
    request: h11.Request | None = None
    url: WebUrl | None = None

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.host[:SHOWN]}:{self.port}"


async def request_head(wire: h11.Connection, client: trio.abc.Stream) -> h11.Request:
    """The first request. Raises: Refusal when it is none."""
    try:
        while (event := wire.next_event()) is h11.NEED_DATA:
            wire.receive_data(bytes(await client.receive_some(PIECE)))
    except h11.RemoteProtocolError as error:
        raise Refusal(error.error_status_hint, f"no HTTP request: {error}") from error
    if not isinstance(event, h11.Request):
        raise Refusal(400, "no HTTP request came")
    return event


def asked_of(request: h11.Request) -> Asked:
    """What it asks for. Raises: Refusal when that is nothing a proxy does."""
    target = request.target.decode("latin-1")
    if request.method == b"CONNECT":
        found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/?#@%]+):([0-9]{1,5})", target, re.ASCII)
        host = normal_host(found[1]) if found else None
        if found is None or host is None or not 0 < int(found[2]) < 65536:
            raise Refusal(400, f"{target[:SHOWN]!r} is no host with a port")
        return Asked(host, int(found[2]))
    url = parse_url(target)
    if isinstance(url, str):
        raise Refusal(400, f"this is a proxy, which takes CONNECT and http:// URLs: {url}")
    if url.scheme != "http":
        raise Refusal(400, "https goes through CONNECT")
    return Asked(url.host, url.port, request, url)


async def refuse(wire: h11.Connection, client: trio.SocketStream, refusal: Refusal) -> None:
    """Answer in words; nothing when the answer has begun already or nobody can be answered."""
    if wire.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
        return
    body = f"harness-batch: {refusal.reason}\n".encode("utf-8", "replace")
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    events = (
        h11.Response(status_code=refusal.status, headers=headers, reason=b"harness-batch"),
        h11.Data(data=body),
        h11.EndOfMessage(),
    )
    await client.send_all(b"".join(wire.send(event) or b"" for event in events))
    await client.send_eof()
    with trio.move_on_after(LINGER_SECONDS):  # closed with bytes unread, the answer would be lost
        for _ in range(LINGER_PIECES):
            if not await client.receive_some(PIECE):
                return


async def forward(asked: Asked, wire: h11.Connection, client: Line, server: Line) -> None:
    """One request to the server and its answer back; then the connection is done with."""
    assert asked.request is not None
    assert asked.url is not None
    there = h11.Connection(h11.CLIENT, max_incomplete_event_size=PIECE)
    headers = [(b"Host", asked.url.authority.encode()), (b"Connection", b"close")]
    head = h11.Request(
        method=asked.request.method,
        target=asked.url.target,
        headers=[*headers, *_end_to_end(asked.request)],
    )
    try:
        await server.send_all(there.send(head) or b"")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_pass_body, wire, client, there, server)
            await _pass_answer(there, server, wire, client)
            nursery.cancel_scope.cancel()
    except* h11.ProtocolError:
        pass  # one of the two does not speak HTTP; the connection just ends, as for any proxy


async def _pass_body(
    wire: h11.Connection, client: Line, there: h11.Connection, server: Line
) -> None:
    while True:
        event = await _next(wire, client)
        if not isinstance(event, (h11.Data, h11.EndOfMessage)):
            return
        await server.send_all(there.send(event) or b"")
        if isinstance(event, h11.EndOfMessage):
            return


async def _pass_answer(
    there: h11.Connection, server: Line, wire: h11.Connection, client: Line
) -> None:
    while True:
        event = await _next(there, server)
        match event:
            case h11.Response():
                headers = [*_end_to_end(event), (b"Connection", b"close")]
                event = h11.Response(
                    status_code=event.status_code, headers=headers, reason=event.reason
                )
            case h11.InformationalResponse() | h11.Data() | h11.EndOfMessage():
                pass
            case _:
                return
        await client.send_all(wire.send(event) or b"")
        if isinstance(event, h11.EndOfMessage):
            return


async def _next(wire: h11.Connection, line: Line) -> h11.Event | None:
    """None when nothing more will come."""
    while (event := wire.next_event()) is h11.NEED_DATA:
        wire.receive_data(await line.receive_some(PIECE))
    return event if isinstance(event, h11.Event) else None


def _end_to_end(message: h11.Request | h11.Response) -> list[tuple[bytes, bytes]]:
    """Its headers without those that concern this hop only."""
    headers = [(bytes(name), bytes(value)) for name, value in message.headers]
    named = {
        word.strip().lower()
        for name, value in headers
        if name == b"connection"
        for word in value.split(b",")
    }
    dropped = HOP_BY_HOP | named
    if any(name == b"transfer-encoding" for name, _ in headers):
        dropped |= {b"content-length"}  # two lengths are how one request becomes two
    return [pair for pair in headers if pair[0] not in dropped]
