"""A few calls of GitHub's REST API with one token, bounded in time and in size.

Source: docs.github.com/rest, version 2022-11-28. The token is sent to the API's own URL only;
redirects are not followed.
"""

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import truststore
from attrs import field, frozen

from harness_batch.errors import CodeHostError, UsageError

SECONDS: Final = 30.0
"""Without a word from the server."""
MOST_SECONDS: Final = 120.0
"""Of one call, however slowly the answer trickles in."""
MOST_BYTES: Final = 32 << 20
"""Of one answer."""
TRIES: Final = 3
"""Of a call that a busy server answered with 502, 503 or 504."""
_BUSY: Final = (502, 503, 504)
_PAGE: Final = 100
_MOST_PAGES: Final = 30


@frozen
class Api:
    """The API of one repository. Raises: CodeHostError for every call that does not succeed."""

    client: httpx.Client = field(repr=False)
    repository: str
    """`owner/name`."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Api":
        """By the runner's variables and GITHUB_TOKEN. Raises: UsageError when one is missing."""
        for name in ("GITHUB_TOKEN", "GITHUB_REPOSITORY"):
            if not environ.get(name):
                raise UsageError(f"{name} is not set; this command runs in a job of GitHub Actions")
        url = environ.get("GITHUB_API_URL") or "https://api.github.com"
        refuse_open("GITHUB_API_URL", url)
        client = httpx.Client(
            base_url=url,
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {environ['GITHUB_TOKEN']}",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "harness-batch",
            },
            timeout=SECONDS,
            verify=truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )
        return cls(client, environ["GITHUB_REPOSITORY"])

    def get(self, path: str, **query: str) -> Any:  # noqa: ANN401 - foreign JSON, checked by the caller
        """The JSON of a path below the repository."""
        return self._call("GET", path, params=query)

    def pages(self, path: str, **query: str) -> Iterator[Any]:
        """The entries of a list, page by page."""
        for page in range(1, _MOST_PAGES + 1):
            entries = self.get(path, **query, per_page=str(_PAGE), page=str(page))
            if not isinstance(entries, list):
                raise CodeHostError(f"GitHub answered {path} with something that is no list")
            yield from entries
            if len(entries) < _PAGE:
                return

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as get
        """The JSON of the answer to a POST or PATCH."""
        return self._call(method, path, json=dict(body))

    def _call(self, method: str, path: str, **request: Any) -> Any:  # noqa: ANN401 - httpx's own
        url = f"/repos/{self.repository}{path}"
        call = f"{method} {url}"
        for tried in range(1, TRIES + 1):
            try:
                with self.client.stream(method, url, **request) as answer:
                    body = _bounded(call, answer)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise CodeHostError(f"GitHub: {call}: {_cause(error)}") from error
            if answer.status_code not in _BUSY or method == "POST" or tried == TRIES:
                break
        return _json(call, answer, body)


def refuse_open(name: str, url: str, *also: str) -> None:
    """Raises: UsageError for a URL to which a token would travel unencrypted, or none at all.

    `also`: further schemes that are fine.
    """
    try:
        parts = urlsplit(url)
        here = parts.hostname in ("127.0.0.1", "::1", "localhost")
    except ValueError:
        raise UsageError(f"{name}={url!r} is no URL") from None
    if parts.scheme not in ("https", *also) and not (parts.scheme == "http" and here):
        raise UsageError(f"{name}={url!r}: the token is sent to https:// only")


def _bounded(call: str, answer: httpx.Response) -> bytes:
    """The body. Raises: CodeHostError when it takes too much room or time."""
    deadline = time.monotonic() + MOST_SECONDS
    body = bytearray()
    for chunk in answer.iter_bytes():
        body += chunk
        if len(body) > MOST_BYTES:
            raise CodeHostError(f"GitHub: {call}: the answer has more than {MOST_BYTES} bytes")
        if time.monotonic() > deadline:
            raise CodeHostError(f"GitHub: {call}: no whole answer within {MOST_SECONDS:.0f} s")
    return bytes(body)


def _json(call: str, answer: httpx.Response, body: bytes) -> Any:  # noqa: ANN401 - foreign JSON
    try:
        said = json.loads(body) if body else None
    except (ValueError, RecursionError) as error:
        raise CodeHostError(f"GitHub: {call}: {answer.status_code}, and no JSON") from error
    if not answer.is_success:
        message = said.get("message") if isinstance(said, dict) else None
        told = f"{answer.status_code} {message or answer.reason_phrase}"
        raise CodeHostError(f"GitHub: {call}: {' '.join(told.split())[:300]}")
    return said


def _cause(error: BaseException) -> str:
    """Httpx often says nothing itself."""
    deepest: BaseException = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    return str(error) or str(deepest) or type(error).__name__
