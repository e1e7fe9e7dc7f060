"""A session's connection to one model behind HTTP; what a wire format adds is a `Wire`."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import urlencode

from attrs import Factory, evolve, frozen

from harness_batch.config.record import ModelInfo, ProviderSettings
from harness_batch.messages import ModelRef
from harness_batch.models.access import Access, Entry
from harness_batch.models.http import Line
from harness_batch.models.protocol import LlmEvent, ModelRequest
from harness_batch.models.streaming import ReplyReader, exchange
from harness_batch.models.target import Target


class Writer(Protocol):
    """Writes the bodies of one session."""

    def body(self, request: ModelRequest) -> bytes:
        """The whole request."""
        ...


@frozen(kw_only=True)
class Wire:
    """How one vendor's interface, and those that imitate it, are spoken to."""

    home: str
    """The vendor's own base URL."""
    path: str
    """Below the base URL."""
    key_header: str
    writer: Callable[[Target], Writer]
    reader: Callable[[], ReplyReader]
    headers: Mapping[str, str] = Factory(dict)
    request_headers: Callable[[ModelRequest, bytes], Mapping[str, str]] = lambda _request, _body: {}
    """What one request and its body add to the headers."""


class HostedModel:
    """One session's connection to one model."""

    def __init__(
        self, ref: ModelRef, settings: ProviderSettings, wire: Wire, access: Access
    ) -> None:
        """Raises: UsageError when the base URL is none, or its proxy cannot be used."""
        self.ref = ref
        options = settings.options_of(ref.model)
        known = settings.models.get(ref.model, ModelInfo())
        self.info = evolve(known, hour_cache=options.cache_ttl == "1h")
        self._settings = settings
        self._wire = wire
        self._access = access
        base_url = settings.base_url or wire.home
        self._line = self._line_to(base_url)
        self._entry = Entry(base_url)
        """The newest request's."""
        self._writer = wire.writer(Target(ref.model, base_url, options, self.info.abilities))

    def demand(self) -> None:
        """See `Model.demand`."""
        self._access.demand()

    async def renew(self) -> bool:
        """See `Model.renew`."""
        return await self._access.renew(self._entry)

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[AsyncIterator[Sequence[LlmEvent]]]:
        """Send one request; see `Model.stream`."""
        self.demand()
        entry = await self._access.entry()
        if entry.base_url != self._entry.base_url:
            await self._line.aclose()
            self._line = self._line_to(entry.base_url)
        body = self._writer.body(request)
        self._entry = entry
        more = self._wire.request_headers(request, body)
        self._line.entry = evolve(entry, headers={**entry.headers, **more})
        async with exchange(self._line, body, self._wire.reader()) as batches:
            yield batches

    async def aclose(self) -> None:
        """Close the connection."""
        await self._line.aclose()

    def _line_to(self, base_url: str) -> Line:
        url = _address(base_url, self._wire.path, self._settings.query)
        return Line(self._settings, url, self._wire.headers)


def _address(base_url: str, path: str, query: Mapping[str, str]) -> str:
    """The URL of requests: parameters stand at its end, those of the base URL first."""
    base, _, own = base_url.partition("?")
    parameters = "&".join(filter(None, (own, urlencode(query))))
    return base.rstrip("/") + path + ("?" + parameters if parameters else "")
