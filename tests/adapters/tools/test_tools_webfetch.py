"""webfetch against a real server on loopback that answers as badly as it is told."""

import gzip
import ipaddress
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trustme
from attrs import define, field

from fakes_tools import Desk, desk
from harness_batch.rules import Ask
from harness_batch.tools.dialing import Dialler
from harness_batch.tools.fetching import MAX_BYTES, MAX_REDIRECTS
from harness_batch.tools.protocol import ToolResult
from harness_batch.tools.webfetch import WebfetchTool

LOOPBACK = (ipaddress.ip_network("127.0.0.1/32"),)
Answer = Callable[[trio.abc.Stream], Awaitable[None]]


def reply(
    body: bytes = b"", status: str = "200 OK", kind: str = "text/html", **headers: str
) -> Answer:
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {kind}"] if kind else [])]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [] if "Transfer_Encoding" in headers else [f"Content-Length: {len(body)}"]
    return partial(_send, "\r\n".join([*lines, "", ""]).encode() + body)


def redirect(there: str) -> Answer:
    return reply(status="302 Found", Location=there)


async def _send(data: bytes, stream: trio.abc.Stream) -> None:
    await stream.send_all(data)


async def endless(stream: trio.abc.Stream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        await stream.send_all(b"x" * 65536)


async def slowly(stream: trio.abc.Stream) -> None:
    while True:
        await stream.send_all(b"H")
        await trio.sleep(0.05)


async def silent(stream: trio.abc.Stream) -> None:
    await stream.receive_some(1)


@define
class Site:
    """A server; `pages` by path."""

    pages: Mapping[str, Answer]
    port: int = 0
    seen: list[bytes] = field(factory=list)
    tls: ssl.SSLContext | None = None

    async def serve(self, stream: trio.abc.Stream) -> None:
        async with stream:
            try:
                if self.tls is not None:
                    stream = trio.SSLStream(stream, self.tls, server_side=True)
                head = b""
                while b"\r\n\r\n" not in head and (more := await stream.receive_some(65536)):
                    head += bytes(more)
                self.seen.append(head)
                path = head.split(b" ", 2)[1].decode() if b" " in head else "/"
                await self.pages[path](stream)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return


@asynccontextmanager
async def serving(
    pages: Mapping[str, Answer], tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    site = Site(pages, tls=tls)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, site.serve, 0, host="127.0.0.1"))
        site.port = listeners[0].socket.getsockname()[1]
        yield site
        nursery.cancel_scope.cancel()


async def to_loopback(host: str, port: int) -> Sequence[str]:
    del port
    return {"inside.example": ["10.0.0.1"], "mixed.example": ["127.0.0.1", "10.0.0.1"]}.get(
        host, ["127.0.0.1"]
    )


def tool(seconds: float = 20.0, tls: ssl.SSLContext | None = None) -> WebfetchTool:
    dialler = Dialler(resolve=to_loopback, allowed=LOOPBACK)
    if tls is not None:
        dialler = Dialler(resolve=to_loopback, allowed=LOOPBACK, tls=lambda: tls)
    return WebfetchTool(dialler=dialler, seconds=seconds)


async def fetched(
    tmp_path: Path, answer: Answer, wanted: str | None = None, seconds: float = 20.0
) -> ToolResult:
    arguments = {} if wanted is None else {"format": wanted}
    async with serving({"/": answer}) as site:
        url = f"http://site.example:{site.port}/"
        return await desk(tmp_path).call(tool(seconds), url=url, **arguments)


PAGE = b"""<html><head><title>T</title><style>p{}</style><script>alert(1)</script></head>
<body><h1>Head</h1><p>Some <b>bold</b> <a href="/x">words</a>.</p></body></html>"""


async def test_a_page_comes_as_markdown_text_or_source(tmp_path: Path) -> None:
    markdown, text, source = [
        await fetched(_folder(tmp_path, name), reply(PAGE), name)
        for name in ("markdown", "text", "html")
    ]
    for result in (markdown, text, source):
        assert result.status == "completed"
        assert "(HTTP 200, text/html, " in result.output.splitlines()[0]
    assert "# Head\n\nSome **bold** [words](/x)." in markdown.output
    assert "alert" not in markdown.output + text.output
    assert "Some bold words." in text.output
    assert PAGE.decode() in source.output


def _folder(above: Path, name: str) -> Path:
    (above / name).mkdir()
    return above / name


async def test_the_request_names_the_host_and_carries_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with serving({"/a?q": reply(b"ok", kind="text/plain", Set_Cookie="a=b")}) as site:
        url = f"http://user-agent.example:{site.port}/a?q#part"
        result = await desk(tmp_path).call(tool(), url=url)
    (head,) = site.seen
    assert result.output.endswith("\n\nok")
    assert f"Host: user-agent.example:{site.port}\r\n".encode() in head
    for word in (b"cookie", b"authorization", b"referer", b"part"):
        assert word not in head.lower()


@pytest.mark.parametrize(
    ("kind", "body", "shown"),
    [
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("application/problem+json; charset=utf-8", b'{"a": 1}', '{"a": 1}'),
        ("text/plain; charset=latin-1", b"\xfc", "ü"),
        ("text/plain", b"\xef\xbb\xbfx", "x"),
        ("text/plain; charset=utf-16", "ü".encode("utf-16"), "ü"),
        ("text/plain; charset=zip", "ü".encode(), "ü"),
        ("text/plain; charset=punycode", b"a-b", "a-b"),
        ("text/html", b'<meta charset="windows-1251">\xcf', "П"),
        ("", b"<!DOCTYPE html><h1>x</h1>", "# x"),
        ("text/html", b"", "(no readable text)"),
    ],
)
async def test_text_is_shown_in_its_own_character_set(
    tmp_path: Path, kind: str, body: bytes, shown: str
) -> None:
    result = await fetched(tmp_path, reply(body, kind=kind))
    assert result.status == "completed"
    assert result.output.partition("\n\n")[2] == shown


@pytest.mark.parametrize(
    ("kind", "body"),
    [("image/png", b"\x89PNG\r\n"), ("application/zip", b"PK"), ("text/plain", b"a\0b")],
)
async def test_binary_content_is_named_not_shown(tmp_path: Path, kind: str, body: bytes) -> None:
    result = await fetched(tmp_path, reply(body, kind=kind))
    assert result.status == "completed"
    assert result.output.endswith(
        f"{kind}, {len(body)} bytes): binary content, which is not shown."
    )


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "403 Forbidden"])
async def test_an_http_error_is_an_error_with_its_status(tmp_path: Path, status: str) -> None:
    result = await fetched(tmp_path, reply(b"<p>why</p>" + b"x" * 9000, status))
    assert result.status == "error"
    assert f"HTTP {status[:3]}" in result.output
    assert "why" in result.output
    assert len(result.output) <= 2000


async def test_packed_bodies_are_unpacked_within_the_limit(tmp_path: Path) -> None:
    body = gzip.compress(b"hello")
    bomb = gzip.compress(b"\0" * (50 * 1024 * 1024))
    fine = await fetched(
        _folder(tmp_path, "a"), reply(body, kind="text/plain", Content_Encoding="gzip")
    )
    too_much = await fetched(
        _folder(tmp_path, "b"), reply(bomb, kind="text/plain", Content_Encoding="gzip")
    )
    broken = await fetched(
        _folder(tmp_path, "c"), reply(b"no gzip", kind="text/plain", Content_Encoding="gzip")
    )
    twice = await fetched(
        _folder(tmp_path, "d"), reply(zlib.compress(body), Content_Encoding="gzip, deflate")
    )
    assert fine.output.endswith("\n\nhello")
    assert "more than 5242880 bytes" in too_much.output
    assert "does not answer as HTTP should" in broken.output
    assert "content coding 'gzip, deflate' is not known" in twice.output
    assert {r.status for r in (too_much, broken, twice)} == {"error"}


async def test_what_is_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    said = await fetched(_folder(tmp_path, "a"), reply(b"x" * (MAX_BYTES + 1), kind="text/plain"))
    unsaid = await fetched(_folder(tmp_path, "b"), endless)
    assert "at most 5242880 can be fetched" in said.output
    assert "more than 5242880 bytes" in unsaid.output
    assert said.status == unsaid.status == "error"


@pytest.mark.parametrize("answer", [slowly, silent], ids=["trickling", "silent"])
async def test_a_server_that_never_ends_is_left(tmp_path: Path, answer: Answer) -> None:
    result = await fetched(tmp_path, answer, seconds=0.4)
    assert result.status == "timeout"
    assert "no answer within 0.4 s" in result.output


HOSTILE = {
    "deep": b"<div>" * 200_000,
    "unclosed": b"<p><b>" * 40_000,
    "colspan": b"<table><tr><td colspan=100000>x</td></tr></table>" * 15_000,
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_page_costs_the_runner_nothing(tmp_path: Path, name: str) -> None:
    result = await fetched(tmp_path, reply(HOSTILE[name]))
    assert result.status == "completed"
    assert len(result.output) < 6 * 1024 * 1024


async def test_redirects_are_followed_and_each_is_judged(tmp_path: Path) -> None:
    pages: dict[str, Answer] = {
        "/": redirect("/a"),
        "/a": redirect("b"),
        "/b": reply(b"here", kind="text/plain"),
        "/out": redirect("http://other.example/x"),
        "/loop": redirect("/loop"),
        "/file": redirect("file:///etc/passwd"),
        "/user": redirect("//docs.example@evil.example/"),
    }
    async with serving(pages) as site:
        start = f"http://site.example:{site.port}"

        def may(ask: Ask) -> bool:
            return ask.pattern.startswith(f"{start}/")

        here = desk(tmp_path, may)
        fine = await here.call(tool(), url=start)
        assert (fine.status, fine.metadata["url"]) == ("completed", f"{start}/b")
        count = len(site.seen)
        denied = await here.call(tool(), url=f"{start}/out")
        assert denied.status == "error"
        assert "redirects to http://other.example/x, which the rules do not allow" in denied.output
        looped = await here.call(tool(), url=f"{start}/loop")
        assert f"more than {MAX_REDIRECTS} redirects" in looped.output
        assert len(site.seen) == count + 1 + MAX_REDIRECTS + 1
        for path in ("/file", "/user"):
            assert (await here.call(tool(), url=start + path)).status == "error"


async def test_a_redirect_to_an_inner_host_is_refused_though_the_rules_allow_it(
    tmp_path: Path,
) -> None:
    pages = {
        "/": redirect("http://inside.example/"),
        "/ip": redirect("http://169.254.169.254/latest/meta-data/"),
        "/mapped": redirect("http://[::ffff:10.0.0.1]/"),
    }

    async def as_it_is(host: str, port: int) -> Sequence[str]:
        return [host] if host[0].isdigit() or ":" in host else await to_loopback(host, port)

    dialler = Dialler(resolve=as_it_is, allowed=LOOPBACK)
    async with serving(pages) as site:
        for path, kind in (("/", "private"), ("/ip", "metadata"), ("/mapped", "private")):
            url = f"http://site.example:{site.port}{path}"
            result = await desk(_folder(tmp_path, kind + path[1:])).call(
                WebfetchTool(dialler=dialler), url=url
            )
            assert result.status == "error"
            assert kind in result.output


INNER = [
    "http://localhost:{port}/",
    "http://127.0.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://127。0。0。1:{port}/",
    "http://0.0.0.0:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
]


@pytest.mark.parametrize("spelled", INNER)
async def test_the_runners_own_host_is_never_dialled(tmp_path: Path, spelled: str) -> None:
    async with serving({"/": reply(PAGE)}) as site:
        result = await desk(tmp_path).call(WebfetchTool(), url=spelled.format(port=site.port))
    assert site.seen == []
    assert result.status == "error"
    assert "only public hosts can be reached" in result.output


async def test_a_name_with_one_bad_address_is_refused(tmp_path: Path) -> None:
    result = await desk(tmp_path).call(tool(), url="http://mixed.example/")
    assert "mixed.example leads to 10.0.0.1, a private address" in result.output


async def test_a_name_is_resolved_once_and_that_address_is_dialled(tmp_path: Path) -> None:
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        del port
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.9"]

    async with serving({"/": reply(b"ok", kind="text/plain")}) as site:
        fetch = WebfetchTool(dialler=Dialler(resolve=rebinding, allowed=LOOPBACK))
        result = await desk(tmp_path).call(fetch, url=f"http://rebind.example:{site.port}/")
    assert result.status == "completed"
    assert asked == ["rebind.example"]


async def test_certificates_are_checked_for_the_name_in_the_url(tmp_path: Path) -> None:
    authority = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("site.example").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    async with serving({"/": reply(b"ok", kind="text/plain")}, server) as site:
        here = desk(tmp_path)
        right = await here.call(tool(tls=client), url=f"https://site.example:{site.port}/")
        wrong = await here.call(tool(tls=client), url=f"https://other.example:{site.port}/")
    assert right.output.endswith("\n\nok")
    assert wrong.status == "error"
    assert "cannot be reached" in wrong.output


async def test_what_is_asked_is_the_normal_form_and_nothing_is_looked_up(tmp_path: Path) -> None:
    here: Desk = desk(tmp_path)
    asked = here.asks(WebfetchTool(), url="HTTPS://Example.com:443/a/../b?x#y")
    assert asked == (Ask("webfetch", "https://example.com/b?x"),)
    refused = here.asks(WebfetchTool(), url="https://docs.python.org@evil.example/")
    assert isinstance(refused, ToolResult)
    assert "user name" in refused.output


async def test_no_server_is_an_error_in_words(tmp_path: Path) -> None:
    listener = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener[0].socket.getsockname()[1]
    await listener[0].aclose()
    result = await desk(tmp_path).call(tool(), url=f"http://site.example:{port}/")
    assert result.status == "error"
    assert "cannot be reached" in result.output
