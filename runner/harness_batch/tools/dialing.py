"""Connections of webfetch: a name is resolved once, checked, and just that address is dialled.

No proxy, whatever the environment says: a proxy would resolve the name again, unchecked.
"""

import functools
import ssl
from collections.abc import Awaitable, Callable, Sequence

import trio
import truststore
from attrs import frozen

from harness_batch.permissions.addresses import Network, addresses_to_dial
from harness_batch.permissions.web_url import WebUrl

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
        """Every address of the host, or words on why it may not be dialled."""
        try:
            found = await self.resolve(url.host, url.port)
        except (OSError, UnicodeError) as error:
            return f"{url.host} cannot be resolved: {getattr(error, 'strerror', None) or error}"
        return addresses_to_dial(url.host, found, self.allowed)

    async def connect(self, addresses: Sequence[str], url: WebUrl) -> trio.abc.Stream:
        """A connection to the first of these addresses that answers; TLS is for the URL's host.

        Raises: OSError, trio.BrokenResourceError.
        """
        plain = await _first_that_answers(addresses, url.port)
        if url.scheme == "http":
            return plain
        secured = trio.SSLStream(plain, self.tls(), server_hostname=url.host, https_compatible=True)
        try:
            await secured.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(plain)
            raise
        return secured


async def _first_that_answers(addresses: Sequence[str], port: int) -> trio.SocketStream:
    failure = OSError("no address")
    for address in addresses:
        try:
            with trio.fail_after(CONNECT_SECONDS):
                return await trio.open_tcp_stream(address, port)
        except trio.TooSlowError:
            failure = OSError(f"{address} does not answer within {CONNECT_SECONDS:g} s")
        except OSError as error:
            failure = error
    raise failure
