"""GitHub and Copilot on 127.0.0.1: device login, token exchange, chat with the tokens of both.

    github = GitHub([Reply(Say("hello"))])
    async with github.served() as server:
        ...  # github.settings(server) for a provider of type copilot; github.exchanges afterwards

It holds its clients to the protocol: a wrong grant, client, token or header gets what GitHub and
Copilot would say.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from attrs import define, field

from wire.script import Answer, Raw, Refuse, Reply, Say
from wire.server import Seen, Server, serve

LOGIN = "gho_wireLogin0123456789abcdef"
"""The GitHub token that the login gives."""
PENDING: Mapping[str, Any] = {"error": "authorization_pending", "error_description": "not yet"}
GRANTED: Mapping[str, Any] = {"access_token": LOGIN, "token_type": "bearer", "scope": "read:user"}
WANTED = ("editor-version", "copilot-integration-id", "openai-intent", "x-initiator")
"""Headers without which Copilot refuses."""


@define
class GitHub:
    """One account. Change its fields while it is served, as life does."""

    replies: Sequence[Reply]
    logins: set[str] = field(factory=lambda: {LOGIN})
    """GitHub tokens that Copilot is granted to."""
    polls: Sequence[Mapping[str, Any] | Answer] = (GRANTED,)
    """What is said when the login is asked for, in order; the last one stays."""
    code: Mapping[str, Any] = field(factory=dict)
    """In place of fields of the device code."""
    token: Mapping[str, Any] = field(factory=dict)
    """In place of fields of the exchanged token; None takes one out."""
    trouble: Answer | None = None
    """The answer to every exchange."""
    expired: set[str] = field(factory=set)
    """Copilot tokens that are refused."""
    asked: list[float] = field(factory=list)
    """When the login was asked for; seconds of any zero."""
    exchanges: list[str] = field(factory=list)
    """The Copilot tokens that were given."""
    port: int = 0

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Server]:
        """The server while the block runs."""
        async with serve(self.answer, relay=True) as server:
            self.port = server.port
            yield server

    def settings(self) -> dict[str, Any]:
        """The provider's configuration."""
        url = f"http://127.0.0.1:{self.port}"
        return {"type": "copilot", "github_url": url, "github_api_url": f"{url}/api"}

    def answer(self, seen: Seen) -> Answer:
        """The answer to a request."""
        places: Mapping[tuple[str, str], Callable[[Seen], Answer]] = {
            ("POST", "/login/device/code"): self._device_code,
            ("POST", "/login/oauth/access_token"): self._poll,
            ("GET", "/api/copilot_internal/v2/token"): self._exchange,
            ("POST", "/v1/chat/completions"): self._chat,
        }
        place = places.get((seen.method, seen.path))
        return place(seen) if place else Refuse(404, {"message": "Not Found"})

    def _device_code(self, seen: Seen) -> Answer:
        if not _form(seen).get("client_id") or seen.headers.get("accept") != "application/json":
            return Refuse(404, {"error": "Not Found"})
        code = {
            "device_code": "device-0123456789",
            "user_code": "WDJB-MJHT",
            "verification_uri": f"http://127.0.0.1:{self.port}/login/device",
            "expires_in": 899,
            "interval": 0.01,
        }
        return Refuse(200, {**code, **self.code})

    def _poll(self, seen: Seen) -> Answer:
        form = _form(seen)
        if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:device_code":
            return Refuse(200, {"error": "unsupported_grant_type"})
        if form.get("device_code") != "device-0123456789" or not form.get("client_id"):
            return Refuse(200, {"error": "incorrect_device_code"})
        poll = self.polls[min(len(self.asked), len(self.polls) - 1)]
        self.asked.append(time.monotonic())
        return poll if isinstance(poll, Reply | Refuse | Raw) else Refuse(200, poll)

    def _exchange(self, seen: Seen) -> Answer:
        if self.trouble is not None:
            return self.trouble
        login = seen.headers.get("authorization", "").removeprefix("token ")
        if login not in self.logins or "editor-version" not in seen.headers:
            return Refuse(401, {"message": f"Bad credentials: {login}"})
        number = len(self.exchanges) + 1
        text = f"tid=wire;exp=1;sku=free:proof{number:02}-of-copilot-0123456789"
        self.exchanges.append(text)
        token = {
            "token": text,
            "expires_at": int(time.time()) + 1800,
            "refresh_in": 1500,
            "endpoints": {"api": f"http://127.0.0.1:{self.port}/v1"},
            **self.token,
        }
        return Refuse(200, {key: value for key, value in token.items() if value is not None})

    def _chat(self, seen: Seen) -> Answer:
        given = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if given not in self.exchanges or given in self.expired:
            body = f"unauthorized: token expired: {given}\n"
            return Refuse(401, body, content_type="text/plain")
        for name in WANTED:
            if name not in seen.headers:
                return Refuse(400, f"bad request: missing {name} header", content_type="text/plain")
        if b"image_url" in seen.body and seen.headers.get("copilot-vision-request") != "true":
            return Refuse(400, "missing required Copilot-Vision-Request header for vision requests")
        return self.replies[seen.step] if seen.step < len(self.replies) else Reply(Say("Done."))


def _form(seen: Seen) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(seen.body.decode()).items()}
