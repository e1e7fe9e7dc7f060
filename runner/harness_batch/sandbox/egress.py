"""The only way out of a sandbox with `network: [hosts]`: a proxy that opens for listed names.

It listens on a unix socket, which a relay inside the sandbox hands connections to, and speaks
CONNECT and plain HTTP. A name is checked against the list, resolved once, every address of it must
be public, and just the checked address is dialled. What is refused gets a 403 that says why and
what is open, and is told to the run. Everything is bounded: connections, heads, bytes, silence.
TLS is not opened: a server that is allowed by name decides itself what it serves.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import h11
import trio
from attrs import define, field, frozen

from harness_batch.errors import SandboxError, only_cause
from harness_batch.permissions.addresses import Network, addresses_to_dial
from harness_batch.sandbox.egress_http import (
    Asked,
    Refusal,
    asked_of,
    forward,
    refuse,
    request_head,
)
from harness_batch.sandbox.egress_rules import HostRule, covered, host_rule

MAX_NOTICES = 50
"""A program that asks again and again is told each time, the run only of so many places."""
PIECE = 64 * 1024
SOCKET = "egress.sock"

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port -> addresses as text. Raises: OSError."""


async def ask_system(host: str, port: int) -> Sequence[str]:
    """The host's own resolver. Raises: OSError."""
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


@frozen(kw_only=True)
class Outside:
    """How hosts are found and reached, and how much of it."""

    resolve: Resolver = ask_system
    exempt: tuple[Network, ...] = ()
    """Networks that may be dialled although they are not public."""
    head_seconds: float = 10.0
    connect_seconds: float = 15.0
    idle_seconds: float = 120.0
    """Without a byte in either direction."""
    total_seconds: float = 3600.0
    total_bytes: int = 4 * 1024**3
    """Of one connection, both directions together."""
    connections: int = 128
    """At once; more get a 503. Package installers open about 50."""


def _unheard(_: str) -> None:
    """Nobody wants to know."""


@asynccontextmanager
async def open_egress(
    hosts: Sequence[str],
    folder: Path,
    *,
    outside: Outside | None = None,
    told: Callable[[str], None] = _unheard,
) -> AsyncIterator[Path]:
    """The path of the proxy's unix socket inside `folder`, which should be private (0700).

    `hosts` as in `sandbox.network`; `told` gets one sentence for each place that was refused.
    Raises: SandboxError when a host is none or the socket cannot be made (its path may have at
    most 107 bytes).
    """
    rules = tuple(host_rule(host) for host in hosts)
    door = _Door(rules, tuple(hosts), outside or Outside(), told)
    path = folder / SOCKET
    listener = await _listen(path)
    try:
        with only_cause():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(trio.serve_listeners, door.serve, [listener]))
                yield path
                nursery.cancel_scope.cancel()
    finally:
        path.unlink(missing_ok=True)


async def _listen(path: Path) -> trio.SocketListener:
    unix = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    try:
        os.fchmod(unix.fileno(), 0o600)  # the mode that bind gives the file
        await unix.bind(str(path))
        unix.listen()
    except OSError as error:
        unix.close()
        raise SandboxError(
            f"cannot make the socket of the egress proxy, {path}: {error}"
        ) from error
    return trio.SocketListener(unix)


@define
class _Door:
    """Who may go where."""

    rules: Sequence[HostRule]
    hosts: Sequence[str]
    outside: Outside
    told: Callable[[str], None]
    _open: int = 0
    _notices: set[str] = field(factory=set)

    async def serve(self, inner: trio.SocketStream) -> None:
        """One connection from inside, to its end."""
        self._open += 1
        try:
            async with inner:
                if self._open <= 2 * self.outside.connections:  # beyond that not even words
                    await self._serve(inner)
        except* (OSError, trio.BrokenResourceError):
            pass  # whoever was there has gone
        finally:
            self._open -= 1

    async def _serve(self, inner: trio.SocketStream) -> None:
        wire = h11.Connection(h11.SERVER, max_incomplete_event_size=PIECE)
        try:
            with trio.fail_after(self.outside.head_seconds):
                asked = asked_of(await request_head(wire, inner))
            async with await self._reached(asked) as outer:
                await self._carry(asked, wire, inner, outer)
        except trio.TooSlowError:
            await refuse(wire, inner, Refusal(408, "no whole request came in time"))
        except Refusal as refusal:
            await refuse(wire, inner, refusal)

    async def _reached(self, asked: Asked) -> trio.SocketStream:
        """A connection to what is asked for. Raises: Refusal."""
        if self._open > self.outside.connections:
            raise Refusal(503, f"more than {self.outside.connections} connections at once")
        if not covered(self.rules, asked.host, asked.port):
            raise self._refused(
                asked, f"it is not in sandbox.network ({', '.join(self.hosts) or 'empty'})"
            )
        try:
            with trio.fail_after(self.outside.connect_seconds):
                found = await self.outside.resolve(asked.host, asked.port)
                addresses = addresses_to_dial(asked.host, found, self.outside.exempt)
                if isinstance(addresses, str):
                    raise self._refused(asked, addresses)
                return await _first_that_answers(addresses, asked.port)
        except trio.TooSlowError:
            raise Refusal(504, f"{asked.place} does not answer") from None
        except (OSError, UnicodeError) as error:
            words = getattr(error, "strerror", None) or error
            raise Refusal(502, f"{asked.place} cannot be reached: {words}") from error

    def _refused(self, asked: Asked, why: str) -> Refusal:
        if asked.place not in self._notices and len(self._notices) < MAX_NOTICES:
            self._notices.add(asked.place)
            self.told(f"a command tried to reach {asked.place}, which was refused: {why}")
        return Refusal(403, f"{asked.place} is refused: {why}")

    async def _carry(
        self, asked: Asked, wire: h11.Connection, inner: trio.SocketStream, outer: trio.SocketStream
    ) -> None:
        with trio.move_on_after(self.outside.total_seconds):
            with trio.CancelScope() as idle:
                meter = _Meter(self.outside.idle_seconds, self.outside.total_bytes, idle)
                meter.count(b"")
                ends = _Metered(inner, meter), _Metered(outer, meter)
                if asked.request is None:
                    await _tunnel(wire, *ends)
                else:
                    await forward(asked, wire, *ends)


async def _first_that_answers(addresses: Sequence[str], port: int) -> trio.SocketStream:
    failure = OSError("no address")
    for address in addresses:
        try:
            return await trio.open_tcp_stream(address, port)
        except OSError as error:
            failure = error
    raise failure


@define
class _Meter:
    """What one connection has carried; too much of it or too long a silence ends it."""

    idle_seconds: float
    left: int
    """Bytes."""
    scope: trio.CancelScope

    def count(self, data: bytes) -> None:
        """Some bytes went by."""
        self.left -= len(data)
        silent_until = trio.current_time() + self.idle_seconds
        self.scope.deadline = silent_until if self.left > 0 else float("-inf")


@frozen
class _Metered:
    """One end of a connection."""

    stream: trio.SocketStream
    meter: _Meter

    async def receive_some(self, most: int) -> bytes:
        """As a stream does."""
        data = bytes(await self.stream.receive_some(most))
        self.meter.count(data)
        return data

    async def send_all(self, data: bytes) -> None:
        """As a stream does."""
        await self.stream.send_all(data)
        self.meter.count(b"")

    async def send_eof(self) -> None:
        """As a stream does."""
        await self.stream.send_eof()


async def _tunnel(wire: h11.Connection, inner: _Metered, outer: _Metered) -> None:
    """Bytes both ways until both have ended."""
    established = h11.Response(status_code=200, headers=[], reason=b"Connection established")
    await inner.send_all(wire.send(established) or b"")
    early, _ = wire.trailing_data
    if early:
        await outer.send_all(early)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_pump, inner, outer)
        nursery.start_soon(_pump, outer, inner)


async def _pump(source: _Metered, target: _Metered) -> None:
    try:
        while data := await source.receive_some(PIECE):
            await target.send_all(data)
        await target.send_eof()
    except (OSError, trio.BrokenResourceError):
        pass  # the other direction may have something to say yet
