"""The egress proxy, driven over its unix socket, with servers on loopback behind it."""

import ipaddress
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from attrs import define, evolve, field, frozen

from harness_batch.errors import SandboxError
from harness_batch.sandbox.egress import Outside, open_egress

LOOPBACK = (ipaddress.ip_network("127.0.0.1/32"),)
NAMES = {
    "good.example": ["127.0.0.1"],
    "inner.example": ["10.0.0.7"],
    "mixed.example": ["93.184.216.34", "169.254.169.254"],
}


@define
class Names:
    """A resolver that knows a few names and counts how often it was asked."""

    known: dict[str, list[str]] = field(factory=lambda: dict(NAMES))
    asked: list[str] = field(factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host in self.known:
            return self.known[host]
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            raise OSError(f"{host} is not known") from None


@frozen
class Canary:
    """A server on loopback; what it was sent lies in `seen`."""

    port: int
    seen: list[bytes]


@frozen
class Way:
    """The proxy's socket, and what the run was told."""

    path: Path
    told: list[str]
    names: Names

    async def say(self, text: bytes) -> bytes:
        """What comes back for these bytes, to the end of the connection."""
        async with await trio.open_unix_socket(str(self.path)) as stream:
            await stream.send_all(text)
            return await to_end(stream)


async def to_end(stream: trio.abc.ReceiveStream) -> bytes:
    """All that comes."""
    answer = b""
    with trio.fail_after(5):
        while more := await stream.receive_some(65536):
            answer += bytes(more)
    return answer


@asynccontextmanager
async def canary(answer: bytes = b"") -> AsyncIterator[Canary]:
    seen: list[bytes] = []

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                head = b""
                while b"\r\n\r\n" not in head and (more := await stream.receive_some(65536)):
                    head += bytes(more)
                if b"content-length: 5" in head.lower():
                    while not head.endswith(b"hello"):
                        head += bytes(await stream.receive_some(65536))
                seen.append(head)
                await stream.send_all(answer or head)
            except trio.BrokenResourceError:
                pass

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield Canary(listeners[0].socket.getsockname()[1], seen)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def way(
    *hosts: str, outside: Outside | None = None, names: Names | None = None
) -> AsyncIterator[Way]:
    names = names or Names()
    outside = evolve(outside or Outside(exempt=LOOPBACK), resolve=names.resolve)
    told: list[str] = []
    with TemporaryDirectory(prefix="hb") as folder:
        async with open_egress(hosts, Path(folder), outside=outside, told=told.append) as path:
            yield Way(path, told, names)


def get(url: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {url} HTTP/1.1", "Host: other.example", *headers, "", ""]).encode()


def connect(place: str) -> bytes:
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()


async def test_a_listed_name_is_reached_by_connect() -> None:
    async with canary(b"pong") as server, way(f"good.example:{server.port}") as out:
        stream = await trio.open_unix_socket(str(out.path))
        async with stream:
            await stream.send_all(connect(f"good.example:{server.port}"))
            established = bytes(await stream.receive_some(65536))
            await stream.send_all(b"ping\r\n\r\n")
            await stream.send_eof()
            assert await to_end(stream) == b"pong"
    assert established.startswith(b"HTTP/1.1 200 ")
    assert server.seen == [b"ping\r\n\r\n"]
    assert out.told == []


async def test_bytes_sent_along_with_connect_are_not_lost() -> None:
    async with canary(b"pong") as server, way(f"good.example:{server.port}") as out:
        answer = await out.say(connect(f"good.example:{server.port}") + b"early\r\n\r\n")
    assert answer.endswith(b"\r\n\r\npong")
    assert server.seen == [b"early\r\n\r\n"]


async def test_a_plain_request_goes_out_under_the_name_that_was_checked() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: x\r\n\r\nok"
    async with canary(page) as server, way(f"*.example:{server.port}") as out:
        answer = await out.say(
            get(
                f"http://good.example:{server.port}/a?b=c",
                "Proxy-Authorization: Basic c2VjcmV0",
                "Connection: X-Hop",
                "X-Hop: 1",
                "X-Kept: 2",
            )
        )
    head = server.seen[0].lower()
    assert head.startswith(b"get /a?b=c http/1.1\r\n")
    assert f"host: good.example:{server.port}\r\n".encode() in head
    assert b"x-kept: 2" in head
    for hidden in (b"other.example", b"proxy-auth", b"x-hop"):
        assert hidden not in head
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\nok")
    assert b"keep-alive" not in answer.lower()


async def test_a_body_goes_out_with_its_request() -> None:
    page = b"HTTP/1.1 204 No Content\r\n\r\n"
    async with canary(page) as server, way(f"good.example:{server.port}") as out:
        url = f"http://good.example:{server.port}/"
        post = f"POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
        answer = await out.say(post.encode())
    assert server.seen[0].endswith(b"\r\n\r\nhello")
    assert answer.startswith(b"HTTP/1.1 204 ")


async def test_what_is_not_listed_is_refused_in_words_and_told_once() -> None:
    async with canary() as server, way("good.example") as out:
        for _ in range(2):
            answer = await out.say(connect(f"127.0.0.1:{server.port}"))
        plain = await out.say(get(f"http://good.example:{server.port}/"))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"is not in sandbox.network (good.example)" in answer
    assert plain.startswith(b"HTTP/1.1 403 ")
    assert len(out.told) == 2
    assert f"127.0.0.1:{server.port}" in out.told[0]
    assert server.seen == []
    assert out.names.asked == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "[::1]"),
        *("[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "169.254.169.254", "[fd00::1]"),
        *("inner.example", "mixed.example", "INNER.example."),
    ],
)
async def test_no_spelling_of_an_inner_address_is_dialled(host: str) -> None:
    async with canary() as server, way(f"*:{server.port}", outside=Outside()) as out:
        answer = await out.say(connect(f"{host}:{server.port}"))
        assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 ")), answer
        plain = await out.say(get(f"http://{host}:{server.port}/"))
        assert plain.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 ")), plain
    assert server.seen == []


async def test_the_address_that_was_checked_is_the_one_that_is_dialled() -> None:
    async with canary(b"pong") as server, way(f"good.example:{server.port}") as out:
        await out.say(connect(f"good.example:{server.port}") + b"x\r\n\r\n")
    assert out.names.asked == ["good.example"]


@pytest.mark.parametrize(
    "words",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
        b"GET https://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET ftp://good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT good.example HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT user@good.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT good.example:443/../x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT good.example:0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://evil@good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_what_is_no_proxy_request_gets_an_answer_and_no_connection(words: bytes) -> None:
    async with way("good.example") as out:
        answer = await out.say(words)
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"harness-batch: " in answer
    assert out.names.asked == []


async def test_a_head_without_end_is_cut() -> None:
    async with way("good.example") as out:
        answer = await out.say(b"GET http://good.example/ HTTP/1.1\r\nX: " + b"x" * 100_000)
    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_client_that_says_nothing_is_let_go() -> None:
    async with way("good.example", outside=Outside(head_seconds=0.05)) as out:
        assert (await out.say(b"GET ht")).startswith(b"HTTP/1.1 408 ")


async def test_silence_and_too_many_bytes_end_a_connection() -> None:
    flood = b"x" * 3_000_000
    async with canary(flood) as server:
        place = f"good.example:{server.port}"
        few = Outside(exempt=LOOPBACK, total_bytes=100_000)
        async with way(place, outside=few) as out:
            assert len(await out.say(connect(place) + b"\r\n\r\n")) < 1_000_000
        brief = Outside(exempt=LOOPBACK, idle_seconds=0.05)
        async with way(place, outside=brief) as out:
            assert (await out.say(connect(place))).startswith(b"HTTP/1.1 200 ")


async def test_only_so_many_connections_are_served_at_once() -> None:
    async with way("good.example", outside=Outside(connections=1)) as out:
        first = await trio.open_unix_socket(str(out.path))
        async with first:
            answer = await out.say(connect("good.example:443"))
            assert answer.startswith(b"HTTP/1.1 503 ")


async def test_a_name_that_nobody_knows_and_a_port_that_nobody_serves_are_gateway_errors() -> None:
    async with way("nowhere.example", "good.example:1") as out:
        unknown = await out.say(connect("nowhere.example:443"))
        closed = await out.say(connect("good.example:1"))
    assert unknown.startswith(b"HTTP/1.1 502 ")
    assert b"nowhere.example is not known" in unknown
    assert closed.startswith(b"HTTP/1.1 502 ")


async def test_the_socket_is_private_and_gone_afterwards() -> None:
    async with way("good.example") as out:
        assert out.path.stat().st_mode & 0o777 == 0o600
    assert not out.path.exists()


async def test_a_path_too_long_for_a_socket_is_told() -> None:
    with TemporaryDirectory(prefix="hb") as folder:
        deep = Path(folder) / ("d" * 120)
        deep.mkdir()
        with pytest.raises(SandboxError, match="egress proxy"):
            async with open_egress(["good.example"], deep):
                pass
