"""Which typed error an answer of a provider is: status, headers and body in, ProviderError out.

Providers agree on few codes, so words decide where codes do not; the words are those of the public
APIs and of the servers that imitate them. The texts are hostile: one line, no control characters,
bounded length, and never the key.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from attrs import evolve, field, frozen

from harness_batch.errors import (
    AuthFailed,
    ContextOverflow,
    ModelRejected,
    Overloaded,
    ProtocolBroken,
    ProviderError,
    ProviderTimeout,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)

EXCERPT_CHARACTERS = 300
"""How much of a server's own words an error quotes."""

MESSAGE_CHARACTERS = 4096
CODE_CHARACTERS = 100
"""How much of them is looked at."""

_TOO_LONG = re.compile(
    r"""prompt\ (is\ )?too\ long
    | context[_ ]length[_ ]exceeded | context[_ ](window|size|length)[_ ]exceed
    | (maximum|model's)\ context\ length | maximum\ (prompt|model|input)\ length
    | maximum\ allowed\ input\ length | max_(model|seq)_len
    | exceed\w*\ [^.]{0,60}\bcontext\ (window|length|size|limit)
    | context\ (window|length|size)[^.]{0,40}exceed | greater\ than\ the\ context
    | input\ (is\ )?too\ long | reduce\ the\ length\ of\ the
    | exceed_context_size | input\ token\ count[^.]*exceeds
    | prompt\ token\ count[^.]*exceeds | exceeded\ model\ token\ limit | too\ many\ input\ tokens
    | range\ of\ input\ length | input\ length[^.]*exceeds | model_max_prompt_tokens_exceeded""",
    re.IGNORECASE | re.VERBOSE,
)
_NO_CREDIT = re.compile(
    r"""credit\ balance | insufficient[_ ](quota|credit|balance|funds) | billing_(error|hard_limit)
    | spend(ing)?[_ ]limit | out\ of\ credits | payment\ required | quota_exceeded_permanently""",
    re.IGNORECASE | re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]{0,500}>", re.IGNORECASE | re.DOTALL)
_BY_CODE: Mapping[str, int] = {
    "overloaded_error": 529,
    "overloaded": 529,
    "server_overloaded": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "requests": 429,
    "tokens": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "content_policy_violation": 400,
    "request_too_large": 413,
    "billing_error": 402,
    "insufficient_quota": 402,
    "timeout_error": 504,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
}
"""Status that a code of an error inside a stream stands for."""


def _shortened(text: str) -> str:
    # Looking for words in what a server sends by the megabyte can take hours.
    return text[:MESSAGE_CHARACTERS]


@frozen
class Refusal:
    """What a provider said instead of a reply; empty where it said nothing of the kind."""

    status: int | None
    message: str = field(default="", converter=_shortened)
    codes: tuple[str, ...] = ()
    """`type` and `code` of the error object, lower case."""
    retry_after: float | None = field(default=None, kw_only=True)
    """Seconds."""
    under_way: bool = field(default=False, kw_only=True)
    """Said under a good HTTP status; `status` is what the codes stand for."""


def one_line(text: str, secret: str | None = None, limit: int = EXCERPT_CHARACTERS) -> str:
    """The text fit for an error message: no tags, no control characters, not long, no key."""
    if secret:
        text = text.replace(secret, "***")
    text = " ".join(_CONTROL.sub(" ", text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def excerpt(body: bytes) -> str:
    """The readable part of a page that should have been something else."""
    return _TAGS.sub(" ", body[:16_384].decode("utf-8", "replace"))


def from_http(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """Read an HTTP answer. `headers` by lower-case name."""
    wait = _retry_after(headers)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return Refusal(status, excerpt(body), retry_after=wait)
    message, codes = _words(document)
    return Refusal(status, message or excerpt(body), codes, retry_after=wait)


def from_stream(error: object) -> Refusal:
    """Read the error object that stands in a stream in place of an event."""
    message, codes = _words({"error": error})
    return by_codes(Refusal(None, message, codes))


def by_codes(refusal: Refusal) -> Refusal:
    """The refusal with the status that its codes stand for: it came under a good one."""
    known = [_BY_CODE[code] for code in refusal.codes if code in _BY_CODE]
    numbers = [int(code) for code in refusal.codes if re.fullmatch(r"[45]\d\d", code)]
    return evolve(refusal, status=next(iter((*numbers, *known)), None), under_way=True)


def typed(refusal: Refusal, provider: str, hint: str, secret: str | None) -> ProviderError:
    """The error to raise. `hint` says where the key comes from."""
    said = one_line(refusal.message, secret)
    place = "error in the stream" if refusal.under_way else f"HTTP {refusal.status}"
    text = f"{provider}: {place}: {said}" if said else f"{provider}: {place}"
    wait = refusal.retry_after
    kind = _kind(refusal)
    status = None if refusal.under_way else refusal.status
    if kind.retryable and kind is not ProviderTimeout:
        return kind(text, status=status, retry_after=wait)
    return kind(f"{text} ({hint})" if kind is AuthFailed else text, status=status)


def _kind(refusal: Refusal) -> type[ProviderError]:
    status = refusal.status or 0
    words = " ".join((*refusal.codes, refusal.message))
    if status == 402 or _NO_CREDIT.search(words):
        return QuotaExhausted
    if status not in {401, 403, 429} and (status == 413 or _TOO_LONG.search(words)):
        return ContextOverflow
    if not status and "rate limit" in words.lower():
        return RateLimited
    if status == 529 or any("overloaded" in code for code in refusal.codes):
        return Overloaded
    return _kind_of_status(status)


def _kind_of_status(status: int) -> type[ProviderError]:
    match status:
        case 429:
            return RateLimited
        case 401 | 403:
            return AuthFailed
        case 408 | 504:
            return ProviderTimeout
        case 0 | 409 | 425:
            return Unavailable
        case _ if status >= 500:
            return Unavailable
        case _:
            return ModelRejected if status >= 400 else ProtocolBroken


def _words(document: object) -> tuple[str, tuple[str, ...]]:
    """Message and codes of an error document in any of the shapes that servers use."""
    if isinstance(document, list) and len(document) == 1:  # Gemini's compatible endpoint
        document = document[0]
    if not isinstance(document, dict):
        return (document if isinstance(document, str) else ""), ()
    error: Any = document.get("error", document)
    if isinstance(error, str):
        detail = document.get("message")
        return (detail if isinstance(detail, str) else error), ()
    if not isinstance(error, dict):
        return "", ()
    nested = error.get("error")
    if isinstance(nested, dict):
        error = nested
    found = (error.get(key) for key in ("message", "detail", "msg", "title"))
    message = next((text for text in found if isinstance(text, str) and text), "")
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
        message = f"{message}: {metadata['raw']}"
    codes = (error.get(key) for key in ("code", "type", "status"))
    return message, tuple(
        str(c)[:CODE_CHARACTERS].lower() for c in codes if isinstance(c, str | int) and c
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _number(text: str | None) -> float | None:
    """A finite, non-negative number; servers send the oddest things here."""
    if text is None or not re.fullmatch(r"\s*\d{1,9}(\.\d{1,9})?\s*", text):
        return None
    return float(text)
