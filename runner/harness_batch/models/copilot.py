"""Models behind GitHub Copilot: chat completions, asked with tokens that last half an hour.

A GitHub token (the login's, or `COPILOT_GITHUB_TOKEN`) is exchanged for a Copilot token when the
first session asks, again before it ends, and after a 401; once for all sessions of a run.
"""

from collections.abc import Mapping

import trio
from attrs import define, evolve, field

from harness_batch.config.keys import read_again
from harness_batch.config.record import ProviderSettings
from harness_batch.errors import AuthFailed, ProviderError
from harness_batch.messages import Compaction
from harness_batch.models import openai_chat
from harness_batch.models.access import Entry, Learned
from harness_batch.models.github import (
    EARLY_SECONDS,
    EDITOR,
    CopilotToken,
    exchanged,
    lowered,
    places,
)
from harness_batch.models.keys import faulty_key, missing_key, where_to_look
from harness_batch.models.protocol import ModelRequest

IMAGE_MARK = b'"type":"image_url"'
"""Stands in a body that holds an image; inside of texts the quotes are escaped."""


@define
class _Held:
    """A token that is in use. Times are trio's."""

    token: CopilotToken = field(repr=False)
    ends: float

    @property
    def is_fresh(self) -> bool:
        """Need not be renewed yet."""
        return trio.current_time() < self.ends - EARLY_SECONDS

    @property
    def is_alive(self) -> bool:
        """Can still be asked with."""
        return trio.current_time() < self.ends


@define
class CopilotAccess:
    """See `Access`."""

    settings: ProviderSettings
    learned: Learned = field(repr=False)
    _held: _Held | None = None
    _dead: AuthFailed | None = None
    """GitHub refused the login itself: nobody asks it again."""
    _asking: trio.Lock = field(factory=trio.Lock)

    def demand(self) -> None:
        """See `Access`."""
        name = self.settings.name
        if (wrong := faulty_key(self.settings)) is not None:
            raise AuthFailed(f"{name}: {wrong}")
        if not self.settings.api_key:
            raise AuthFailed(f"{name}: no GitHub login; {missing_key(self.settings)}")

    async def entry(self) -> Entry:
        """See `Access`."""
        async with self._asking:
            held = await self._fresh()
        token = held.token
        base_url = self.settings.base_url or token.chat or places(self.settings).chat
        headers = {"authorization": f"Bearer {token.text}", **EDITOR}
        headers |= lowered(self.settings.headers)
        return Entry(base_url, headers, token.text, where_to_look(self.settings))

    async def renew(self, refused: Entry) -> bool:
        """See `Access`. The exchange itself is the next request's."""
        async with self._asking:
            if self._dead is not None:
                return False
            if self._held is not None and self._held.token.text == refused.secret:
                self._held = None
            return True

    async def _fresh(self) -> _Held:
        held = self._held
        if held is not None and held.is_fresh:
            return held
        if self._dead is not None:
            raise AuthFailed(str(self._dead), status=self._dead.status)
        try:
            token = await self._exchanged()
        except ProviderError as error:
            # Renewed early so that a hiccup at GitHub stops nobody.
            if error.retryable and held is not None and held.is_alive:
                return held
            raise
        self._held = _Held(token, trio.current_time() + token.lasts)
        return self._held

    async def _exchanged(self) -> CopilotToken:
        """Raises: ProviderError."""
        key = (self.settings.api_key or "").strip()
        try:
            token = await exchanged(self.settings, key)
        except AuthFailed as error:
            newer = await trio.to_thread.run_sync(read_again, self.settings)
            if newer is None or newer == key:
                self._dead = error
                raise
            self.learned(newer)
            self.settings = evolve(self.settings, api_key=newer)
            token = await exchanged(self.settings, newer)
        self.learned(token.text)
        # Its last part alone is the proof; the rest says whose token it is.
        self.learned(token.text.rpartition(":")[2])
        return token


def request_headers(request: ModelRequest, body: bytes) -> Mapping[str, str]:
    """Who began: the first request of a session is the user's, all others are the agent's own."""
    goes_on = any(
        turn.message.role == "assistant"
        or any(isinstance(part.body, Compaction) for part in turn.parts)
        for turn in request.turns
    )
    headers = {
        "openai-intent": "conversation-edits",
        "x-initiator": "agent" if goes_on else "user",
    }
    return {**headers, "copilot-vision-request": "true"} if IMAGE_MARK in body else headers


WIRE = evolve(
    openai_chat.WIRE,
    home="https://api.githubcopilot.com",
    request_headers=request_headers,
)
