"""A session's connection to one model behind HTTP; what a wire format adds is a `Wire`."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import trio
from attrs import Factory, frozen

from harness_batch.config.record import ModelInfo, ProviderSettings
from harness_batch.messages import ModelRef
from harness_batch.models.http import Line
from harness_batch.models.keys import Credential
from harness_batch.models.protocol import LlmEvent, ModelRequest
from harness_batch.models.streaming import ReplyReader, exchange


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
    writer: Callable[[str, str], Writer]
    """Of a model's name and the base URL."""
    reader: Callable[[], ReplyReader]
    headers: Mapping[str, str] = Factory(dict)


class HostedModel:
    """One session's connection to one model."""

    def __init__(self, ref: ModelRef, settings: ProviderSettings, wire: Wire) -> None:
        self.ref = ref
        self.info = settings.models.get(ref.model, ModelInfo())
        base_url = settings.base_url or wire.home
        self._credential = Credential(settings, base_url, wire.key_header, wire.home)
        self._line = Line(
            settings,
            base_url.rstrip("/") + wire.path,
            {**wire.headers, **self._credential.headers()},
            self._credential.hint(),
        )
        self._writer = wire.writer(ref.model, base_url)
        self._reader = wire.reader

    def demand(self) -> None:
        """See `Model.demand`."""
        self._credential.demand()

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[AsyncIterator[Sequence[LlmEvent]]]:
        """Send one request; see `Model.stream`."""
        await trio.lowlevel.checkpoint()
        self.demand()
        body = self._writer.body(request)
        async with exchange(self._line, body, self._reader()) as batches:
            yield batches

    async def aclose(self) -> None:
        """Close the connection."""
        await self._line.aclose()
