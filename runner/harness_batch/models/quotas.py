"""What a provider's headers say of its rate limits, as typed values. Hostile until then.

Forms: `anthropic-ratelimit-<what>-limit|remaining`, and `x-ratelimit-limit|remaining[-<what>]` of
OpenAI and those that imitate it. What is not a pair of numbers says nothing.
Sources: https://platform.claude.com/docs/en/api/rate-limits,
https://platform.openai.com/docs/guides/rate-limits
"""

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

_NAME = re.compile(
    r"anthropic-ratelimit-(?P<a>[a-z-]{1,40})-(?P<af>limit|remaining)"
    r"|x-ratelimit-(?P<xf>limit|remaining)(-(?P<x>[a-z0-9-]{1,40}))?"
)
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?")
MOST = 32
"""Headers that are looked at."""


@frozen
class Quota:
    """One quota of an account: `requests`, `tokens`, `input-tokens`; empty where it has no name."""

    what: str
    limit: float
    remaining: float

    @property
    def left(self) -> float:
        """The share that is left, 0 to 1."""
        return min(1.0, self.remaining / self.limit)


def quotas_of(headers: Mapping[str, str]) -> tuple[Quota, ...]:
    """Every quota that the headers tell in full, by name. `headers` by lower-case name."""
    told: dict[str, dict[str, float]] = {}
    names = [name for name in headers if "ratelimit-" in name][:MOST]
    for name in names:
        found, value = _NAME.fullmatch(name), headers[name].strip()
        if found is not None and _NUMBER.fullmatch(value):
            what = found["a"] or found["x"] or ""
            told.setdefault(what, {})[found["af"] or found["xf"]] = float(value)
    return tuple(
        Quota(what, figures["limit"], figures["remaining"])
        for what, figures in sorted(told.items())
        if figures.get("limit", 0) > 0 and "remaining" in figures
    )


def least_left(quotas: Iterable[Quota]) -> float | None:
    """The share that is left of the tightest; None without any."""
    return min((quota.left for quota in quotas), default=None)
