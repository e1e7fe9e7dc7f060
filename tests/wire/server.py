"""The HTTP/1.1 server itself: reads requests, picks answers, writes bytes as told."""

import hashlib
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import Any

import trio
from attrs import define, field, frozen

from wire import responses
from wire.rendering import Format, bytes_of, events_of
from wire.script import Answer, Delivery, Raw, Refuse, Reply, Say, Script, Tries
from wire.validation import anthropic_fault, openai_fault

PATHS: Mapping[str, Format] = {
    "/v1/messages": "anthropic",
    "/v1/chat/completions": "openai",
    "/v1/responses": "responses",
}
FAULTS: Mapping[Format, Callable[[Mapping[str, Any]], str | None]] = {
    "anthropic": anthropic_fault,
    "openai": openai_fault,
    "responses": responses.fault,
}


@frozen
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    connection: int
    """Number of the connection it came on."""
    query: str = ""
    """Parameters of the URL, which `path` is without."""

    @cached_property
    def json(self) -> Any:
        """The body, parsed; not to be changed."""
        return json.loads(self.body)

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return str(self.json.get("model"))

    @property
    def step(self) -> int:
        """Replies of the model in it."""
        if "input" in self.json:
            return responses.replies_in(self.json["input"])
        return sum(m.get("role") == "assistant" for m in self.json["messages"])


Chooser = Callable[[Seen], Answer]
Scripts = Mapping[str, Script | Chooser]
"""A script for each model: many conversations at once; what is not in it is an unknown model."""


@define
class Server:
    """A running server. `key` None: every key is right. `models` None: every model is known."""

    answer: Script | Scripts | Chooser
    port: int
    key: str | None = None
    models: Sequence[str] | None = None
    relay: bool = False
    """A proxy: every path is passed to the chooser."""
    requests: list[Seen] = field(factory=list)
    connections: int = 0
    _open: int = 0
    _quiet: trio.Event = field(factory=trio.Event)
    _tries: Counter[tuple[str, str, int]] = field(factory=Counter)

    @property
    def anthropic_url(self) -> str:
        """For `base_url` of a provider of type anthropic."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """For `base_url` of a provider of type openai-chat or openai-responses."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def all_closed(self) -> None:
        """Until no connection is open."""
        if self._open:
            await self._quiet.wait()

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection."""
        number = self.connections
        self.connections += 1
        if not self._open:
            self._quiet = trio.Event()
        self._open += 1
        wire = _Connection(stream, number)
        try:
            while (seen := await wire.request()) is not None:
                self.requests.append(seen)
                if not await wire.send(self._respond(seen), seen, self._number(seen)):
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client went away, as clients do
        finally:
            with trio.CancelScope(shield=True):
                await stream.aclose()
            self._open -= 1
            if not self._open:
                self._quiet.set()

    def _number(self, seen: Seen) -> int:
        return seen.step if seen.path in PATHS and seen.body else 0

    def _respond(self, seen: Seen) -> Answer:
        form = PATHS.get(seen.path)
        if self.relay and callable(self.answer):
            return self.answer(seen)
        if seen.method != "POST" or form is None or "content-length" not in seen.headers:
            return _error("openai", 404, "not_found_error", f"no such place: {seen.path}")
        given = seen.headers.get("x-api-key", seen.headers.get("authorization", ""))
        if self.key is not None and given.removeprefix("Bearer ") != self.key:
            return _error(form, 401, "authentication_error", f"invalid x-api-key: {given}")
        body = seen.json
        known = self.answer if isinstance(self.answer, Mapping) else self.models
        if known is not None and body.get("model") not in known:
            return _error(form, 404, "not_found_error", f"model: {body.get('model')}")
        fault = FAULTS[form](body)
        if form == "anthropic" and "anthropic-version" not in seen.headers:
            fault = "anthropic-version: header is required"
        if fault is not None:
            return _error(form, 400, "invalid_request_error", fault)
        return self._scripted(seen)

    def _scripted(self, seen: Seen) -> Answer:
        if callable(self.answer):
            return self.answer(seen)
        script = self.answer[seen.model] if isinstance(self.answer, Mapping) else self.answer
        if callable(script):
            return script(seen)
        step = seen.step
        if step >= len(script):
            return Reply(Say("Nothing more to do."))
        match script[step]:
            case Tries(answers=answers):
                key = (seen.model, _conversation(seen), step)
                turn = self._tries[key]
                self._tries[key] += 1
                return answers[min(turn, len(answers) - 1)]
            case answer:
                return answer


@asynccontextmanager
async def serve(
    answer: Script | Scripts | Chooser,
    *,
    key: str | None = None,
    models: Sequence[str] | None = None,
    relay: bool = False,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    """A server on a free port of 127.0.0.1 for as long as the block runs."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = Server(answer, listener.socket.getsockname()[1], key, models, relay)
        listeners = [trio.SSLListener(listener, tls) if tls else listener]
        nursery.start_soon(partial(trio.serve_listeners, server.handle, listeners))
        yield server
        nursery.cancel_scope.cancel()


def _conversation(seen: Seen) -> str:
    """Sessions are told apart by the first message that is not the system's."""
    for message in seen.json.get("messages") or seen.json["input"]:
        content = message.get("content")
        if message.get("role") != "system":
            if isinstance(content, list):  # cache marks come and go
                content = "".join(str(block.get("text")) for block in content)
            return hashlib.blake2b(str(content).encode(), digest_size=8).hexdigest()
    return ""


def _error(form: Format, status: int, kind: str, message: str) -> Refuse:
    error = {"type": kind, "message": message}
    if form == "anthropic":
        return Refuse(status, {"type": "error", "error": error, "request_id": "req_1"})
    return Refuse(status, {"error": {**error, "param": None, "code": None}})


@define
class _Connection:
    """HTTP/1.1 on one socket."""

    stream: trio.abc.Stream
    number: int
    received: bytearray = field(factory=bytearray)

    async def request(self) -> Seen | None:
        """The next request; None when the client has closed."""
        while (end := self.received.find(b"\r\n\r\n")) < 0:
            if not await self._more() or self.received.startswith(b"\x16"):
                return None  # closed, or somebody who wants to speak TLS
        head = bytes(self.received[:end]).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        pairs = (line.partition(":") for line in head[1:])
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        size = end + 4 + int(headers.get("content-length", "0"))
        while len(self.received) < size:
            if not await self._more():
                return None
        body = bytes(self.received[end + 4 : size])
        del self.received[:size]
        path, _, query = path.partition("?")
        return Seen(method, path, headers, body, self.number, query)

    async def _more(self) -> bool:
        data = await self.stream.receive_some(65_536)
        self.received += data
        return bool(data)

    async def send(self, answer: Answer, seen: Seen, number: int) -> bool:
        """Send the answer; False when the connection is used up."""
        match answer:
            case Raw(data=data, hang=hang):
                await self.stream.send_all(data)
                if hang:
                    await self._until_gone()
                return False
            case Refuse():
                await self._refuse(answer)
                return True
            case Reply():
                form = PATHS[seen.path]
                events = events_of(answer, form, number, str(seen.json["model"]))
                return await self._reply(bytes_of(events, answer.delivery), answer.delivery)

    async def _refuse(self, answer: Refuse) -> None:
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        body = text.encode()
        headers = {
            "content-type": answer.content_type,
            "content-length": str(len(body)),
            **answer.headers,
        }
        await self.stream.send_all(_head(answer.status, headers) + body)

    async def _reply(self, pieces: list[bytes], delivery: Delivery) -> bool:
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        if delivery.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        elif delivery.framing == "length":
            headers["content-length"] = str(sum(map(len, pieces)))
        lasting = delivery.keep_alive and delivery.framing != "close"
        headers["connection"] = "keep-alive" if lasting else "close"
        headers.update(delivery.headers)
        await trio.sleep(delivery.first_byte)
        await self.stream.send_all(_head(200, headers))
        limit = delivery.cut_after if delivery.cut_after is not None else delivery.silent_after
        sent = 0
        for piece in pieces:
            if limit is not None and sent >= limit:
                break
            part = piece if limit is None else piece[: max(0, limit - sent)]
            if delivery.trickle is not None:
                part = piece  # comments do not stand inside an event
            await self._write(part, delivery)
            sent += len(part)
        if delivery.silent_after is not None:
            await self._stay_silent(delivery)
        if delivery.cut_after is not None and not delivery.clean_cut:
            return False
        if delivery.framing == "chunked":
            await self.stream.send_all(b"0\r\n\r\n")
        return lasting

    async def _write(self, part: bytes, delivery: Delivery) -> None:
        if delivery.framing == "chunked":
            part = b"%x\r\n%s\r\n" % (len(part), part)
        await self.stream.send_all(part)
        if delivery.pause is not None:
            await trio.sleep(delivery.pause)

    async def _stay_silent(self, delivery: Delivery) -> None:
        while delivery.trickle is not None:
            await self._write(b": keep-alive" + delivery.newline.encode() * 2, delivery)
            await trio.sleep(delivery.trickle)
        await self._until_gone()

    async def _until_gone(self) -> None:
        while await self._more():
            pass


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
