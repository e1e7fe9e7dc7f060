"""The HTTP line itself: proxies, encodings, bursts, one connection a session."""

import gzip
import json
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trustme

from harness_batch.errors import (
    ContextOverflow,
    NetworkFailure,
    ProtocolBroken,
    ProviderTimeout,
    UsageError,
)
from harness_batch.models.paced import UNPACED_SECONDS
from harness_batch.models.protocol import Finish, TextDelta
from harness_batch.models.transport import tls_context
from wire import Delivery, Raw, Refuse, Reply, Say, Seen, serve
from wire.rendering import bytes_of, events_of
from wire.transcripts import open_model, replies, request

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
HELLO = Reply(Say("Hello."))


@pytest.fixture(autouse=True)
def _no_proxies_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def stream_of(reply: Reply) -> bytes:
    return b"".join(bytes_of(events_of(reply, "openai", 0, "m"), Delivery()))


def spoken(seen: Seen) -> Raw:
    """What a proxy passes on: it gets the whole URL."""
    assert seen.path == "http://provider.invalid/v1/chat/completions"
    body = stream_of(HELLO)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n"
    return Raw(head.encode() + b"\r\n" + body)


async def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(spoken, relay=True) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "example.org")
        model = open_model("openai-chat", "http://provider.invalid/v1")
        events = await replies(model, request())
        await model.aclose()
    assert isinstance(events[-1], Finish)
    assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize("exempt", ["127.0.0.1", "[::1],127.0.0.1", "*", "localhost, 127.0.0.1"])
async def test_what_no_proxy_names_is_reached_directly(
    monkeypatch: pytest.MonkeyPatch, exempt: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", exempt)
    async with serve([HELLO]) as server:
        model = open_model("openai-chat", server.openai_url)
        assert isinstance((await replies(model, request()))[-1], Finish)
        await model.aclose()


def test_an_ipv6_address_in_no_proxy_exempts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "[::1]")
    open_model("openai-chat", "http://[::1]:1/v1")
    with pytest.raises(UsageError, match="socks5 proxies are not supported"):
        open_model("openai-chat", "http://127.0.0.1:1/v1")


async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    model = open_model("anthropic", "https://provider.invalid")
    with pytest.raises(NetworkFailure, match="cannot connect"):
        await replies(model, request())
    await model.aclose()


async def test_a_server_that_speaks_no_tls_is_a_network_failure() -> None:
    async with serve([HELLO]) as server:
        model = open_model("anthropic", f"https://127.0.0.1:{server.port}")
        with pytest.raises(NetworkFailure, match=r"cannot connect to 127\.0\.0\.1"):
            await replies(model, request())
        await model.aclose()


async def test_tls_trusts_what_the_environment_names_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server_side)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    async with serve([HELLO], tls=server_side) as server:
        url = f"https://127.0.0.1:{server.port}"
        model = open_model("anthropic", url)
        with pytest.raises(ProtocolBroken, match=r"certificate of .* is not trusted"):
            await replies(model, request())
        await model.aclose()
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        tls_context.cache_clear()
        model = open_model("anthropic", url)
        assert isinstance((await replies(model, request()))[-1], Finish)
        await model.aclose()
        tls_context.cache_clear()


async def tunnel(stream: trio.SocketStream) -> None:
    """A proxy for one connection: CONNECT, then bytes both ways until one side is done."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += bytes(await stream.receive_some(4096))
    assert head.startswith(b"CONNECT 127.0.0.1:")
    assert b"proxy-authorization: basic" in head.lower()
    port = int(head.split(b" ")[1].rpartition(b":")[2])
    far = await trio.open_tcp_stream("127.0.0.1", port)
    await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def pump(source: trio.SocketStream, sink: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in source:
                await sink.send_all(bytes(data))
        nursery.cancel_scope.cancel()

    async with stream, far, trio.open_nursery() as nursery:
        nursery.start_soon(pump, stream, far)
        nursery.start_soon(pump, far, stream)


async def test_tls_goes_through_the_proxy_end_to_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server_side)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    tls_context.cache_clear()
    async with serve([HELLO], tls=server_side) as server, trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, tunnel, [listener])
        proxy = f"http://me:secret@127.0.0.1:{listener.socket.getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        model = open_model("openai-responses", f"https://127.0.0.1:{server.port}/v1")
        events = await replies(model, request())
        await model.aclose()
        nursery.cancel_scope.cancel()
    tls_context.cache_clear()
    assert isinstance(events[-1], Finish)
    assert "authorization" in server.requests[0].headers
    assert "proxy-authorization" not in server.requests[0].headers


async def test_a_long_event_in_small_pieces_is_one_event() -> None:
    text = "ü" * 1_000_000
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    data = b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    async with serve(lambda _: Raw(head + data)) as server:
        model = open_model("openai-chat", server.openai_url)
        events = await replies(model, request())
        await model.aclose()
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == text


async def test_a_compressed_stream_is_understood() -> None:
    body = gzip.compress(stream_of(HELLO))
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    async with serve(lambda _: Raw(head.encode() + body)) as server:
        model = open_model("openai-chat", server.openai_url)
        events = await replies(model, request())
        await model.aclose()
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello."


def compressed(body: bytes, encoding: str) -> Raw:
    head = f"content-type: text/event-stream\r\ncontent-encoding: {encoding}\r\n"
    length = f"content-length: {len(body)}\r\n\r\n"
    return Raw(f"HTTP/1.1 200 OK\r\n{head}{length}".encode() + body)


@pytest.mark.parametrize(
    ("body", "encoding", "told"),
    [
        (gzip.compress(gzip.compress(b"data: " + bytes(30_000_000))), "gzip, gzip", "nobody asked"),
        (gzip.compress(b"data: " + bytes(30_000_000)), "gzip", "more than 8388608 bytes"),
        (b"no gzip at all", "gzip", "not the gzip that it is said to be"),
        (b"\x1b\x00\xf8", "br", "nobody asked"),
    ],
    ids=["two-layers", "bomb", "none", "another"],
)
async def test_a_compressed_stream_never_swells_past_what_a_reply_may_have(
    body: bytes, encoding: str, told: str
) -> None:
    async with serve(lambda _: compressed(body, encoding)) as server:
        model = open_model("openai-chat", server.openai_url)
        with pytest.raises(ProtocolBroken, match=told):
            await replies(model, request())
        await model.aclose()


async def test_a_long_reply_is_read_in_bursts_and_to_its_end() -> None:
    pause = 0.001
    count = 300
    reply = Reply(Say("abcdefg" * count), delivery=Delivery(pause=pause))
    async with serve([reply]) as server:
        model = open_model("openai-chat", server.openai_url)
        batches, deltas = 0, 0
        async with model.stream(request()) as stream:
            async for batch in stream:
                batches += 1
                deltas += sum(isinstance(event, TextDelta) for event in batch)
        await model.aclose()
    assert deltas == count
    assert batches < count / 2 + UNPACED_SECONDS / pause


async def test_a_reply_that_comes_in_one_go_is_one_batch() -> None:
    reply = Reply(Say("abcdefg" * 100), delivery=Delivery(chunk=0, framing="length"))
    async with serve([reply]) as server:
        model = open_model("openai-chat", server.openai_url)
        async with model.stream(request()) as stream:
            sizes = [len(batch) async for batch in stream]
        await model.aclose()
    assert sum(sizes) == 104
    assert len(sizes) <= 2


async def test_a_reply_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness_batch.models.streaming.MAX_REPLY_BYTES", 50_000)
    reply = Reply(Say("abcdefg" * 1000), delivery=Delivery(chunk=4096))
    async with serve([reply]) as server:
        model = open_model("openai-chat", server.openai_url)
        with pytest.raises(Exception, match="longer than 50000 bytes"):
            await replies(model, request())
        await server.all_closed()
        await model.aclose()


async def test_a_refusal_that_never_ends_is_read_only_so_far() -> None:
    endless = b"HTTP/1.1 413 No\r\ncontent-type: text/plain\r\n\r\n" + b"too big " * 100_000
    async with serve(lambda _: Raw(endless, hang=True)) as server:
        model = open_model("openai-chat", server.openai_url)
        with trio.fail_after(3), pytest.raises(ContextOverflow, match="too big too big"):
            await replies(model, request())
        await server.all_closed()
        await model.aclose()


async def test_usage_that_never_comes_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness_batch.models.streaming.TAIL_SECONDS", 0.05)
    body = stream_of(Reply(Say("x"), delivery=Delivery(usage=False, end_mark=False)))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    async with serve(lambda _: Raw(head + body, hang=True)) as server:
        model = open_model("openai-chat", server.openai_url)
        with trio.fail_after(3):
            events = await replies(model, request())
        await model.aclose()
    assert isinstance(events[-1], Finish)


async def test_a_request_that_nobody_reads_is_given_up() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1", backlog=1)
    port = listeners[0].socket.getsockname()[1]
    waits = {"first_byte_timeout": 0.1, "connect_timeout": 0.1}
    model = open_model("openai-chat", f"http://127.0.0.1:{port}/v1", **waits)
    with trio.fail_after(3), pytest.raises(ProviderTimeout):
        await replies(model, request())
    await model.aclose()
    await listeners[0].aclose()


async def test_a_refused_page_is_quoted_in_one_line() -> None:
    page = "<html><head><title>Sign in</title></head><body>Please <b>log in</b>\n</body></html>"
    async with serve([Refuse(200, page, {}, "text/html; charset=utf-8")]) as server:
        model = open_model("openai-chat", server.openai_url)
        with pytest.raises(Exception, match="not an event stream but text/html") as caught:
            await replies(model, request())
        await model.aclose()
    assert str(caught.value).endswith("Sign in Please log in")
