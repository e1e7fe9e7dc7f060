"""Sessions that share a long prefix: one writes it to the provider's cache, the others read it.

A prompt cache holds what a reply has begun on. Requests that go out together all miss it, and each
pays for the whole prefix. So the first request of the first session goes out, and those of the
others follow when its first byte has arrived. Nobody waits long, and nobody waits for one that
failed.
"""

import math
from urllib.parse import urlsplit

import trio
from attrs import define, field

from harness_batch.config.record import ProviderSettings

LIFETIME_S = 300.0
"""How long providers keep a prefix that nobody uses."""
LONGEST_WAIT_S = 30.0
LONG_BYTES = 4096
"""About 1,024 tokens: what is shorter no provider caches."""


@define
class _Prefix:
    warm_at: float = -math.inf
    """When a reply to it last began."""
    leader: trio.Event | None = None
    """Of the request that went first; set when its fate is known."""


@define
class Lead:
    """One request's part in keeping a prefix warm."""

    _prefix: _Prefix
    _leads: trio.Event | None = None

    def begun(self) -> None:
        """The reply has begun: the prefix is in the cache. Any number of times."""
        self._prefix.warm_at = trio.current_time()
        self.over()

    def over(self) -> None:
        """The request has ended, well or not: whoever waits for it goes on."""
        if self._leads is not None:
            self._leads.set()
            if self._prefix.leader is self._leads:
                self._prefix.leader = None
            self._leads = None


@define
class WarmStart:
    """The prefixes that are in use."""

    _prefixes: dict[str, _Prefix] = field(factory=dict)

    async def turn(self, prefix: str, *, first: bool) -> Lead:
        """The turn of one request: at once, or for a session's `first` one when it is warm."""
        found = self._prefixes.setdefault(prefix, _Prefix())
        if not first or trio.current_time() - found.warm_at < LIFETIME_S:
            return Lead(found)
        if found.leader is None:
            found.leader = trio.Event()
            return Lead(found, found.leader)
        with trio.move_on_after(LONGEST_WAIT_S):
            await found.leader.wait()
        return Lead(found)


def caches_prompts(settings: ProviderSettings, model: str) -> bool:
    """Whether the provider keeps what prompts begin with: known vendors, and who has a price."""
    if settings.type in {"anthropic", "openai-responses"}:
        return True
    info = settings.models.get(model)
    priced = info is not None and info.prices is not None and info.prices.cache_read is not None
    return priced or urlsplit(settings.base_url or "").hostname == "api.openai.com"
