"""Connections for httpx: paced, through the environment's proxy, with one TLS context for all.

httpx's own transports take no network backend, and its reading of the environment fails on
`NO_PROXY=[::1]`. HTTP/1.1 only: a cancelled HTTP/2 stream is never reset by the libraries at hand.
"""

import functools
import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
import truststore

from harness_batch.errors import UsageError
from harness_batch.models.paced import PacedBackend

KEEPALIVE_SECONDS = 60.0
"""An idle connection is not used again after that long."""


@functools.cache
def tls_context() -> ssl.SSLContext:
    """The one TLS context: certificates of the system, SSL_CERT_FILE honoured."""
    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Transport(httpx.AsyncBaseTransport):
    """The connections to one URL. Raises httpcore's errors, not httpx's.

    Raises (when built): UsageError when the environment names a proxy that cannot be used.
    """

    def __init__(self, url: str) -> None:
        self._pool = _pool(url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its body is read through the answer."""
        url = request.url
        response = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._response.aiter_stream()

    async def aclose(self) -> None:
        await self._response.aclose()


def _pool(url: str) -> httpcore.AsyncConnectionPool:
    tls = tls_context() if url.startswith("https:") else None
    proxy = _proxy_for(url)
    if proxy is None:
        return httpcore.AsyncConnectionPool(
            ssl_context=tls,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=PacedBackend(),
        )
    return httpcore.AsyncHTTPProxy(
        proxy_url=httpcore.URL(
            scheme=proxy.url.raw_scheme,
            host=proxy.url.raw_host,
            port=proxy.url.port,
            target=b"/",
        ),
        proxy_auth=proxy.raw_auth,
        proxy_ssl_context=tls_context() if proxy.url.scheme == "https" else None,
        ssl_context=tls,
        keepalive_expiry=KEEPALIVE_SECONDS,
        network_backend=PacedBackend(),
    )


def _proxy_for(url: str) -> httpx.Proxy | None:
    """The proxy that the environment names for this URL (HTTPS_PROXY, ALL_PROXY, NO_PROXY ...)."""
    parts = urlsplit(url)
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    # The standard library does not know that `[::1]` in NO_PROXY means ::1.
    exempt = {name.strip().strip("[]") for name in proxies.get("no", "").split(",")}
    if not address or host in exempt or proxy_bypass(host):
        return None
    try:
        proxy = httpx.Proxy(address if "://" in address else f"http://{address}")
    except (ValueError, httpx.InvalidURL):
        raise UsageError(f"the proxy in {parts.scheme.upper()}_PROXY is not a URL") from None
    if proxy.url.scheme not in {"http", "https"}:
        raise UsageError(f"{proxy.url.scheme} proxies are not supported; use an HTTP proxy")
    return proxy
