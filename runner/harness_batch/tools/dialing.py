"""Connections of webfetch: a name is resolved once, checked, and just that address is dialled.

No proxy, whatever the environment says: a proxy would resolve the name again, unchecked.
"""

import functools
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore
import trio
import truststore
from attrs import Factory, frozen

from harness_batch.permissions.web_url import WebUrl
from harness_batch.tools.addresses import Network, refused_address

MAX_ADDRESSES = 4
"""Of one name; tried in the resolver's order."""
CONNECT_SECONDS = 10.0

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port -> addresses as text. Raises: OSError."""


@functools.cache
def public_tls() -> ssl.SSLContext:
    """Certificates of the system, SSL_CERT_FILE honoured."""
    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def ask_system(host: str, port: int) -> Sequence[str]:
    """The host's own resolver. Raises: OSError."""
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


@frozen(kw_only=True)
class Dialler:
    """How hosts are found and reached."""

    resolve: Resolver = ask_system
    allowed: tuple[Network, ...] = ()
    """Networks that may be dialled although they are not public."""
    tls: Callable[[], ssl.SSLContext] = public_tls

    async def addresses(self, url: WebUrl) -> tuple[str, ...] | str:
        """Every address of the host, or words on why it may not be dialled.

        One that is refused is enough to refuse the name: it is not known which the next caller
        would get.
        """
        try:
            found = await self.resolve(url.host, url.port)
        except (OSError, UnicodeError) as error:
            return f"{url.host} cannot be resolved: {getattr(error, 'strerror', None) or error}"
        for address in found:
            kind = refused_address(address, self.allowed)
            if kind is not None:
                return f"{url.host} leads to {address}, {kind}; only public hosts can be fetched"
        return tuple(found[:MAX_ADDRESSES]) or f"{url.host} has no address"

    def pool(self, addresses: Sequence[str], url: WebUrl) -> httpcore.AsyncConnectionPool:
        """Connections to these addresses only. HTTP/1.1, nothing kept."""
        return httpcore.AsyncConnectionPool(
            ssl_context=self.tls() if url.scheme == "https" else None,
            max_connections=1,
            max_keepalive_connections=0,
            network_backend=_Pinned(tuple(addresses)),
        )


@frozen
class _Pinned(httpcore.AsyncNetworkBackend):
    """Dials the addresses it was made with, whatever host is asked for."""

    addresses: tuple[str, ...]
    trio: httpcore.TrioBackend = Factory(httpcore.TrioBackend)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        del host, timeout, local_address
        failure: Exception = httpcore.ConnectError("no address")
        for address in self.addresses:
            try:
                return await self.trio.connect_tcp(
                    address, port, CONNECT_SECONDS, None, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure
