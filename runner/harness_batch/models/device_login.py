"""A login at GitHub by a code that the user enters in a browser. What comes next is decided apart.

Source: RFC 8628, section 3.5, and GitHub's own words for the same.
"""

from collections.abc import Callable
from typing import TypeAlias

import trio
from attrs import field, frozen

from harness_batch.config.record import ProviderSettings
from harness_batch.errors import AuthFailed, ProtocolBroken, ProviderError
from harness_batch.messages import JsonObject
from harness_batch.models import refusals
from harness_batch.models.github import DeviceCode, asked, begun_login, exchanged

SLOWER_SECONDS = 5.0
"""What `slow_down` adds to the interval when it does not name a new one."""
LATE = "the code was not entered in time; log in again"


@frozen
class Granted:
    """The login is done."""

    token: str = field(repr=False)


@frozen
class Wait:
    """Ask again after that many seconds."""

    seconds: float


@frozen
class Refused:
    """There will be no login, in words."""

    why: str


Poll: TypeAlias = Granted | Wait | Refused


def poll_of(answer: JsonObject, interval: float) -> Poll:
    """What GitHub's answer means when it was asked after `interval` seconds."""
    token, error = answer.get("access_token"), answer.get("error")
    if isinstance(token, str) and token:
        return Granted(token)
    match error:
        case "authorization_pending":
            return Wait(interval)
        case "slow_down":
            return Wait(_slower(answer.get("interval"), interval))
        case str():
            return Refused(_REFUSALS.get(error) or _words(error, answer.get("error_description")))
        case _:
            return Refused("GitHub's answer holds neither a token nor an error")


_REFUSALS = {
    "expired_token": LATE,
    "token_expired": LATE,
    "access_denied": "the login was denied at GitHub",
}


def _slower(named: object, interval: float) -> float:
    if isinstance(named, int | float) and not isinstance(named, bool) and named > interval:
        return float(named)
    return interval + SLOWER_SECONDS


def _words(error: str, description: object) -> str:
    told = refusals.one_line(description) if isinstance(description, str) else ""
    return f"{refusals.one_line(error, limit=60)}: {told}".rstrip(": ")


async def device_login(settings: ProviderSettings, show: Callable[[DeviceCode], None]) -> str:
    """A GitHub token that Copilot takes. `show` tells the user what to enter where.

    Raises: AuthFailed when it was denied, too late, or gives no Copilot; ProviderError.
    """
    code = await begun_login(settings)
    show(code)
    token = await _token(settings, code)
    await exchanged(settings, token)  # told now rather than in the first run
    return token


async def _token(settings: ProviderSettings, code: DeviceCode) -> str:
    # The end cuts no request short: its answer may be the token.
    interval, end = code.interval, trio.current_time() + code.lasts
    while True:
        await trio.sleep(min(interval, max(0.0, end - trio.current_time())))
        if trio.current_time() >= end:
            raise AuthFailed(f"{settings.name}: {LATE}")
        try:
            poll = poll_of(await asked(settings, code), interval)
        except ProtocolBroken:
            raise
        except ProviderError as error:
            if not error.retryable:
                raise
            poll = Wait(interval + SLOWER_SECONDS)
        match poll:
            case Granted(token=token):
                return token
            case Wait(seconds=seconds):
                interval = seconds
            case Refused(why=why):
                raise AuthFailed(f"{settings.name}: {why}")
