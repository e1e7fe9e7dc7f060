"""One session's HTTP line to its provider: one POST, its reply in batches of bytes, typed errors.

One client per session: a pool shared by many sessions walks all its connections at every request.
Nothing is followed, stored or taken from `.netrc`. Every wait has an end.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpcore
import httpx
import trio
from attrs import frozen

from harness_batch import __version__
from harness_batch.config.record import ProviderSettings
from harness_batch.errors import (
    ModelRejected,
    NetworkFailure,
    ProtocolBroken,
    ProviderError,
    ProviderTimeout,
    UsageError,
)
from harness_batch.models import refusals
from harness_batch.models.access import Entry
from harness_batch.models.inflate import unpacking
from harness_batch.models.paced import Batches, PacedStream
from harness_batch.models.quotas import Quota, quotas_of
from harness_batch.models.transport import Transport

REFUSAL_BYTES = 64 * 1024
REFUSAL_SECONDS = 10.0
"""How much of an error's body is read, and for how long."""
REST_SECONDS = 0.1
"""How long the last bytes after the end mark are waited for, so that the connection lives on."""

LOST = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpx.DecodingError,
)
"""How a connection fails."""
UNANSWERED = (httpcore.ReadError, httpcore.ReadTimeout, httpcore.RemoteProtocolError)
"""How it fails after the request has gone out."""


@frozen
class Answer:
    """A reply that has begun: its status and its body."""

    status: int
    batches: Batches
    quotas: tuple[Quota, ...] = ()
    """What its headers tell of rate limits."""

    async def rest(self) -> None:
        """Read past the end mark to the body's end, or the connection cannot be used again."""
        with trio.move_on_after(REST_SECONDS):
            try:
                while await self.batches.next():
                    pass
            except LOST:
                return  # the reply is complete; only the connection is lost


@frozen
class Document:
    """An answer that is no stream."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    """Its beginning: what is longer is none of those that are asked for."""


class Line:
    """Sends requests to one URL of one provider."""

    def __init__(self, settings: ProviderSettings, url: str, headers: Mapping[str, str]) -> None:
        """Raises: UsageError when the base URL is none, or its proxy cannot be used."""
        self.settings = settings
        self.entry = Entry(url)
        """What the next request goes out with; its headers beside those given here."""
        self._url = _checked(url, settings.name)
        self._client = httpx.AsyncClient(
            transport=Transport(url),
            headers={
                "accept": "text/event-stream",
                "accept-encoding": "identity",
                "content-type": "application/json",
                "user-agent": f"harness-batch/{__version__}",
                **headers,
            },
            timeout=httpx.Timeout(
                None, connect=settings.connect_timeout, write=settings.first_byte_timeout
            ),
            trust_env=False,
            follow_redirects=False,
        )

    async def aclose(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[Answer]:
        """Send one request; its event stream is open inside.

        Raises: ProviderError when there is no event stream.
        """
        response = await self._send("POST", body)
        batches = _batches(response)
        try:
            kind = response.headers.get("content-type", "text/event-stream")
            if response.status_code != 200 or "text/event-stream" not in kind.lower():
                raise await self._refusal(response, kind, batches)
            yield Answer(response.status_code, batches, quotas_of(response.headers))
        finally:
            with trio.CancelScope(shield=True):
                await batches.aclose()
                await response.aclose()

    async def fetch(self, method: str, body: bytes = b"") -> Document:
        """One request whose answer is no stream, whatever its status. Raises: ProviderError."""
        response = await self._send(method, body)
        batches = _batches(response)
        try:
            return Document(response.status_code, response.headers, await _head(batches))
        finally:
            with trio.CancelScope(shield=True):
                await batches.aclose()
                await response.aclose()

    def failed(self, error: Exception) -> ProviderError:
        """What a failure of the connection is to us."""
        host = urlsplit(self._url).netloc.rpartition("@")[2]
        why = refusals.one_line(_why(error), self.entry.secret)
        kind: type[ProviderError] = NetworkFailure
        match error:
            case httpcore.ConnectTimeout():
                within = f"{self.settings.connect_timeout:g} s"
                kind, text = ProviderTimeout, f"no connection to {host} within {within}"
            case httpcore.TimeoutException():
                kind, text = ProviderTimeout, f"{host} does not take the request"
            case httpcore.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in why:
                kind = ProtocolBroken  # trying again does not help
                text = f"the certificate of {host} is not trusted (SSL_CERT_FILE adds one): {why}"
            case httpcore.ConnectError():
                text = f"cannot connect to {host}: {why}"
            case httpcore.ProxyError():
                text = f"the proxy refuses: {why}"
            case httpcore.LocalProtocolError():
                # No details: they quote the header, and the key is one.
                kind, text = ModelRejected, "a header of the request is not valid"
            case httpcore.RemoteProtocolError() if "closed" not in why and "disconn" not in why:
                kind, text = ProtocolBroken, f"{host} does not speak HTTP/1.1: {why}"
            case httpx.DecodingError():
                kind, text = ProtocolBroken, why
            case _:
                text = f"the connection to {host} broke: {why}"
        return kind(f"{self.settings.name}: {text}", sent=isinstance(error, UNANSWERED))

    def refused(self, refusal: refusals.Refusal) -> ProviderError:
        """The typed error of what the provider said instead of a reply."""
        return refusals.typed(refusal, self.settings.name, self.entry.hint, self.entry.secret)

    async def _send(self, method: str, body: bytes) -> httpx.Response:
        patience = self.settings.first_byte_timeout
        headers = dict(self.entry.headers)
        try:
            request = self._client.build_request(method, self._url, content=body, headers=headers)
        except UnicodeEncodeError:
            raise self.failed(httpcore.LocalProtocolError()) from None
        try:
            with trio.fail_after(self.settings.connect_timeout + patience) as waiting:

                async def begin_waiting(stage: str, _: object) -> None:
                    # Connecting has its own limit; the wait begins when the request goes out.
                    if stage == "http11.send_request_headers.started":
                        waiting.deadline = trio.current_time() + patience

                request.extensions["trace"] = begin_waiting
                return await self._client.send(request, stream=True)
        except trio.TooSlowError:
            within = f"{self.settings.first_byte_timeout:g} s"
            text = f"{self.settings.name}: no answer within {within}"
            raise ProviderTimeout(text, sent=True) from None
        except LOST as error:
            raise self.failed(error) from error

    async def _refusal(
        self, response: httpx.Response, kind: str, batches: Batches
    ) -> ProviderError:
        body = await _head(batches)
        status = response.status_code
        if 300 <= status < 400:
            target = refusals.one_line(response.headers.get("location", "nowhere"))
            text = f"HTTP {status}: redirects to {target}; base_url has to name the place itself"
            return ProtocolBroken(f"{self.settings.name}: {text}", status=status)
        refusal = refusals.from_http(status, response.headers, body)
        if status == 200 and refusal.codes:
            # An error document under a good status: its own codes say what it is.
            error = self.refused(refusals.by_codes(refusal))
            error.status = status
            return error
        if status < 400:
            said = refusals.one_line(refusal.message, self.entry.secret, 120)
            what = refusals.one_line(kind, limit=60)
            text = f"HTTP {status}: not an event stream but {what}: {said}"
            return ProtocolBroken(f"{self.settings.name}: {text}", status=status)
        return self.refused(refusal)


def _batches(response: httpx.Response) -> Batches:
    network = response.extensions["network_stream"]
    assert isinstance(network, PacedStream)
    unpack = unpacking(response.headers.get("content-encoding", "identity"))
    return Batches(response.aiter_raw(), network, unpack)


def _checked(url: str, provider: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        good = False
    if not good:
        shown = refusals.one_line(url, limit=80)
        raise UsageError(f"provider {provider}: base_url {shown!r} is not an http(s) URL")
    return url


async def _head(batches: Batches) -> bytes:
    pieces: list[bytes] = []
    with trio.move_on_after(REFUSAL_SECONDS):
        size = 0
        try:
            while size < REFUSAL_BYTES and (batch := await batches.next()):
                pieces.extend(batch)
                size += sum(map(len, batch))
        except LOST:
            pass  # what arrived says more than that the rest did not
    return b"".join(pieces)[:REFUSAL_BYTES]


def _why(error: BaseException) -> str:
    """The cause in the fewest words; httpcore's own are often empty, trio's say it twice."""
    found: BaseException | None = error
    said: list[str] = []
    while found is not None:
        if isinstance(found, ConnectionError) and found.errno:
            return os.strerror(found.errno)
        if isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
            continue
        text = str(found)
        if text and text not in said:
            said.append(text)
        found = found.__cause__ or found.__context__
    return "; ".join(said) or type(error).__name__
