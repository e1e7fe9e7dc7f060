"""One page over HTTP: redirects followed with every hop judged anew, all of it bounded.

No cookies, no credentials, no proxy; at most `MAX_BYTES` on the wire and unpacked; `MAX_SECONDS`
for everything, redirects included.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence

import h11
import trio
from attrs import frozen

from harness_batch import __version__
from harness_batch.permissions.web_url import WebUrl, join_url
from harness_batch.tools.dialing import Dialler
from harness_batch.tools.exchange import Exchange

MAX_BYTES = 5 * 1024 * 1024
MAX_SECONDS = 30.0
MAX_REDIRECTS = 5
_REDIRECTS = {301, 302, 303, 307, 308}
_INFLATED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Content coding -> zlib's window bits."""


@frozen
class Page:
    """An answer. `body` is empty when its type is not wanted."""

    url: WebUrl
    """Where it came from in the end."""
    status: int
    content_type: str
    """As the server said it, lower case."""
    body: bytes
    length: int | None = None
    """What the server said about its size."""


@frozen
class NoPage:
    """Why there is none, in words for the model."""

    reason: str
    timed_out: bool = False


@frozen(kw_only=True)
class Fetcher:
    """Fetches pages."""

    dialler: Dialler
    may: Callable[[WebUrl], bool]
    """What the rules say to where a redirect leads."""
    wanted: Callable[[str], bool]
    """Whether a body of this content type is worth reading."""
    accept: str = "*/*"
    seconds: float = MAX_SECONDS

    async def fetch(self, url: WebUrl) -> Page | NoPage:
        """The page at `url`, which the rules allow already."""
        try:
            with trio.fail_after(self.seconds):
                return await self._followed(url)
        except trio.TooSlowError:
            return NoPage(f"no answer within {self.seconds:g} s: {url}", timed_out=True)

    async def _followed(self, url: WebUrl) -> Page | NoPage:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._one(url)
            if not isinstance(answer, WebUrl):
                return answer
            if not self.may(answer):
                return NoPage(
                    f"{url} redirects to {answer}, which the rules do not allow; no rule for "
                    "the first URL covers the second"
                )
            url = answer
        return NoPage(f"more than {MAX_REDIRECTS} redirects; the last one leads to {url}")

    async def _one(self, url: WebUrl) -> Page | NoPage | WebUrl:
        addresses = await self.dialler.addresses(url)
        if isinstance(addresses, str):
            return NoPage(addresses)
        try:
            stream = await self.dialler.connect(addresses, url)
            try:
                return await self._answer(url, Exchange(stream))
            finally:
                await trio.aclose_forcefully(stream)
        except (OSError, trio.BrokenResourceError) as error:
            return NoPage(f"{url} cannot be reached: {_words(error)}")
        except (h11.RemoteProtocolError, zlib.error) as error:
            return NoPage(f"{url} does not answer as HTTP should: {_words(error)}")

    async def _answer(self, url: WebUrl, exchange: Exchange) -> Page | NoPage | WebUrl:
        asked = [
            ("Host", url.authority),
            ("User-Agent", f"harness-batch/{__version__}"),
            ("Accept", self.accept),
            ("Accept-Encoding", "gzip"),
            ("Connection", "close"),
        ]
        head = await exchange.get(url.target, asked)
        headers = {bytes(name): bytes(value) for name, value in reversed(list(head.headers))}
        if head.status_code in _REDIRECTS and b"location" in headers:
            location = headers[b"location"].decode("utf-8", "replace")
            there = join_url(url, location)
            if isinstance(there, str):
                return NoPage(f"{url} redirects to {location[:200]!r}: {there}")
            return there
        return await self._page(url, exchange, head.status_code, headers)

    async def _page(
        self, url: WebUrl, exchange: Exchange, status: int, headers: Mapping[bytes, bytes]
    ) -> Page | NoPage:
        kind, length, coding = (
            headers.get(name, b"").decode("latin-1").strip().lower()
            for name in (b"content-type", b"content-length", b"content-encoding")
        )
        size = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else None
        if not self.wanted(kind):
            return Page(url, status, kind, b"", size)
        if size is not None and size > MAX_BYTES:
            return NoPage(f"{url} has {size} bytes, at most {MAX_BYTES} can be fetched")
        body = await _read(exchange, coding)
        if body is None:
            return NoPage(f"{url}: the content coding {coding[:50]!r} is not known")
        if len(body) > MAX_BYTES:
            return NoPage(f"{url} has more than {MAX_BYTES} bytes, the most that can be fetched")
        return Page(url, status, kind, body, size)


async def _read(exchange: Exchange, coding: str) -> bytes | None:
    """At most one byte more than `MAX_BYTES`; None for an unknown coding."""
    if coding not in ("", "identity") and coding not in _INFLATED:
        return None
    unpack = zlib.decompressobj(_INFLATED[coding]) if coding in _INFLATED else None
    pieces: list[bytes] = []
    room = MAX_BYTES + 1
    packed = MAX_BYTES + 1
    while chunk := await exchange.more():
        packed -= len(chunk)
        piece = chunk[:room] if unpack is None else unpack.decompress(chunk, room)
        pieces.append(piece)
        room -= len(piece)
        if room <= 0 or packed <= 0:
            return b"".join(pieces).ljust(MAX_BYTES + 1, b"\0")
        if unpack is not None and unpack.eof:
            break
    return b"".join(pieces)


def _words(error: Exception) -> str:
    """An error's own words, or those of what caused it."""
    causes: Sequence[BaseException | None] = (error, error.__cause__, error.__context__)
    return next((str(one) for one in causes if one is not None and str(one)), type(error).__name__)
