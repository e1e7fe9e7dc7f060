"""GitHub as the way to Copilot: a login by device code, and a short-lived token for it.

Nothing is taken on trust: every answer is bounded, checked, and quoted without its secrets.
Sources: https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow
and RFC 8628.
"""

import json
import time
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from attrs import field, frozen

from harness_batch import __version__
from harness_batch.config.record import ProviderSettings
from harness_batch.errors import (
    AuthFailed,
    NetworkFailure,
    ProtocolBroken,
    ProviderError,
    RateLimited,
)
from harness_batch.messages import JsonObject
from harness_batch.models import refusals
from harness_batch.models.access import Entry
from harness_batch.models.http import Document, Line
from harness_batch.models.keys import where_to_look

GITHUB = "https://github.com"
CLIENT_ID = "Iv1.b507a08c87ecfe98"
"""The public OAuth client that Copilot's editors log in with; `github_client_id` replaces it."""
SCOPE = "read:user"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

EDITOR: Mapping[str, str] = {
    "editor-version": f"harness-batch/{__version__}",
    "editor-plugin-version": f"harness-batch/{__version__}",
    "copilot-integration-id": "vscode-chat",
}
"""Who asks. Copilot knows its integrations by name and refuses others; `headers` replace these."""

EARLY_SECONDS = 60.0
"""A token is renewed so long before it ends."""
UNTOLD_SECONDS = 1500.0
"""How long a token is taken to last that does not say it."""


@frozen(kw_only=True)
class Places:
    """Where one GitHub is: github.com, a tenant of ghe.com, or what the configuration names."""

    web: str
    api: str
    chat: str
    """Where Copilot answers when a token names no place."""


def places(settings: ProviderSettings) -> Places:
    """Out of `github_url` and `github_api_url`."""
    web = (settings.github_url or GITHUB).rstrip("/")
    parts = urlsplit(web)
    api = (settings.github_api_url or f"{parts.scheme}://api.{parts.netloc}").rstrip("/")
    home = parts.hostname == "github.com"
    chat = "https://api.githubcopilot.com" if home else f"https://copilot-api.{parts.netloc}"
    return Places(web=web, api=api, chat=chat)


@frozen(kw_only=True)
class CopilotToken:
    """What Copilot is asked with, and for how long: seconds from when it came."""

    text: str = field(repr=False)
    lasts: float
    chat: str | None
    """Where to ask; None: where it is usual."""


@frozen(kw_only=True)
class DeviceCode:
    """What the user enters in a browser."""

    user_code: str
    address: str
    device_code: str = field(repr=False)
    lasts: float
    interval: float
    """Seconds between two questions whether it was entered."""


async def exchanged(settings: ProviderSettings, github_token: str) -> CopilotToken:
    """A Copilot token for a GitHub token. Raises: ProviderError."""
    url = f"{places(settings).api}/copilot_internal/v2/token"
    line = Line(settings, url, {"accept": "application/json", **EDITOR})
    headers = {"authorization": f"token {github_token}", **lowered(settings.headers)}
    again = f"log in again: harness-batch auth login {settings.name}"
    hint = f"{where_to_look(settings)}, or {again}" if settings.api_key else again
    line.entry = Entry(url, headers, github_token, hint)
    try:
        answer = await line.fetch("GET")
        if answer.status != 200:
            raise _refused(line, answer)
        return _token(settings, answer)
    finally:
        await line.aclose()


async def begun_login(settings: ProviderSettings) -> DeviceCode:
    """A code to be entered. Raises: ProviderError."""
    form = {"client_id": client_id(settings), "scope": SCOPE}
    found = await _form(settings, "/login/device/code", form)
    device, user = _text(found, "device_code"), _text(found, "user_code")
    address = _text(found, "verification_uri")
    if not (device and user and urlsplit(address).scheme in {"http", "https"}):
        told = refusals.one_line(_text(found, "error_description") or _text(found, "error"))
        raise ProtocolBroken(f"{settings.name}: GitHub gave no code to enter: {told or 'no words'}")
    return DeviceCode(
        user_code=refusals.one_line(user, limit=40),
        address=refusals.one_line(address, limit=200),
        device_code=device,
        lasts=_seconds(found, "expires_in", 900.0),
        interval=_seconds(found, "interval", 5.0),
    )


async def asked(settings: ProviderSettings, code: DeviceCode) -> JsonObject:
    """What GitHub says of a code: `access_token`, or `error`. Raises: ProviderError."""
    form = {
        "client_id": client_id(settings),
        "device_code": code.device_code,
        "grant_type": DEVICE_GRANT,
    }
    return await _form(settings, "/login/oauth/access_token", form)


def client_id(settings: ProviderSettings) -> str:
    """The OAuth client that logs in."""
    return settings.github_client_id or CLIENT_ID


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers that the user configured, so that they replace those of the same name."""
    return {name.lower(): value for name, value in headers.items()}


async def _form(settings: ProviderSettings, path: str, form: Mapping[str, str]) -> JsonObject:
    url = places(settings).web + path
    kind = "application/x-www-form-urlencoded"
    line = Line(settings, url, {"accept": "application/json", "content-type": kind})
    line.entry = Entry(url, {}, form.get("device_code"), "log in again")
    try:
        answer = await line.fetch("POST", urlencode(form).encode())
    finally:
        await line.aclose()
    if answer.status >= 500:
        raise NetworkFailure(f"{settings.name}: GitHub answers HTTP {answer.status}")
    # Errors of OAuth come with 200 from GitHub, with 400 from others.
    if answer.status not in {200, 400}:
        raise _refused(line, answer)
    return _object(settings, answer)


def _token(settings: ProviderSettings, answer: Document) -> CopilotToken:
    found = _object(settings, answer)
    text = _text(found, "token")
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ProtocolBroken(f"{settings.name}: GitHub's answer holds no Copilot token")
    lasts = _seconds(found, "refresh_in", 0.0) + EARLY_SECONDS
    if lasts <= EARLY_SECONDS:
        # The clocks of both sides may differ, so this is only the second choice.
        ends = _seconds(found, "expires_at", 0.0)
        lasts = max(ends - time.time(), 2 * EARLY_SECONDS) if ends else UNTOLD_SECONDS
    endpoints = found.get("endpoints")
    chat = _text(endpoints, "api") if isinstance(endpoints, dict) else ""
    if chat and not is_safe(chat, places(settings).api):
        shown = refusals.one_line(chat, text, 80)
        raise ProtocolBroken(f"{settings.name}: GitHub names {shown!r} as Copilot's address")
    return CopilotToken(text=text, lasts=lasts, chat=chat or None)


def is_safe(url: str, api: str) -> bool:
    """A token travels in the clear only where GitHub itself is spoken to so."""
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and parts.scheme in {"https", urlsplit(api).scheme}


def _refused(line: Line, answer: Document) -> ProviderError:
    refusal = refusals.from_http(answer.status, answer.headers, answer.body)
    name, hint = line.settings.name, line.entry.hint
    if answer.status == 404:
        said = "no Copilot for this login, or the token is no login's"
        return AuthFailed(f"{name}: HTTP 404: {said} ({hint})", status=404)
    if answer.status == 403 and "rate limit" in refusal.message.lower():
        said = refusals.one_line(refusal.message, line.entry.secret)
        wait = refusal.retry_after
        return RateLimited(f"{name}: HTTP 403: {said}", status=403, retry_after=wait)
    return line.refused(refusal)


def _object(settings: ProviderSettings, answer: Document) -> JsonObject:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ProtocolBroken(f"{settings.name}: GitHub's answer is not a JSON object")
    return found


def _text(found: JsonObject, key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""


def _seconds(found: JsonObject, key: str, otherwise: float) -> float:
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return otherwise
    return float(value)
