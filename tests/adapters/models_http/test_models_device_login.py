"""The login by device code: every answer that GitHub has, and what the user is told."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness_batch.config.record import ProviderSettings
from harness_batch.errors import AuthFailed, ProtocolBroken
from harness_batch.models.device_login import Granted, Poll, Refused, Wait, device_login, poll_of
from harness_batch.models.github import DeviceCode, places
from wire import Refuse
from wire.github import GRANTED, LOGIN, PENDING, GitHub


def settings_for(github: GitHub) -> ProviderSettings:
    return ProviderSettings(name="copilot", **github.settings())


async def logged_in(github: GitHub) -> tuple[str, list[DeviceCode]]:
    shown: list[DeviceCode] = []
    async with github.served():
        return await device_login(settings_for(github), shown.append), shown


@pytest.mark.parametrize(
    "polls",
    [
        [GRANTED],
        [PENDING, PENDING, GRANTED],
        [PENDING, {"error": "slow_down", "interval": 0.05}, GRANTED],
    ],
)
async def test_a_login_waits_until_it_is_granted(polls: Sequence[Mapping[str, Any]]) -> None:
    github = GitHub((), polls=polls)
    token, shown = await logged_in(github)
    assert token == LOGIN
    assert len(github.asked) == len(polls)
    assert len(github.exchanges) == 1, "Copilot was tried"
    assert [code.user_code for code in shown] == ["WDJB-MJHT"]
    assert shown[0].address.endswith("/login/device")
    assert "device-0123456789" not in repr(shown)


async def test_slower_means_slower() -> None:
    polls = [{"error": "slow_down", "interval": 0.2}, GRANTED]
    github = GitHub((), polls=polls)
    await logged_in(github)
    first, second = github.asked
    assert second - first >= 0.2


@pytest.mark.parametrize(
    ("changes", "kind", "told"),
    [
        ({"polls": [{"error": "access_denied"}]}, AuthFailed, "denied at GitHub"),
        ({"polls": [PENDING, {"error": "expired_token"}]}, AuthFailed, "not entered in time"),
        ({"polls": [PENDING], "code": {"expires_in": 0.1}}, AuthFailed, "not entered in time"),
        ({"polls": [{"error": "device_flow_disabled"}]}, AuthFailed, "device_flow_disabled"),
        ({"polls": [Refuse(200, "<html>")]}, ProtocolBroken, "not a JSON object"),
        ({"code": {"user_code": None, "error": "no"}}, ProtocolBroken, "no code to enter: no"),
        ({"code": {"verification_uri": "javascript:x"}}, ProtocolBroken, "no code to enter"),
        ({"logins": set()}, AuthFailed, "HTTP 401"),
    ],
)
async def test_a_login_that_comes_to_nothing_says_why(
    changes: Mapping[str, Any], kind: type[Exception], told: str
) -> None:
    github = GitHub((), **changes)
    async with github.served():
        with pytest.raises(kind, match=r"^copilot: ") as caught:
            await device_login(settings_for(github), lambda _code: None)
    assert told in str(caught.value)
    assert LOGIN not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "poll"),
    [
        ({"access_token": "t"}, Granted("t")),
        ({"error": "authorization_pending"}, Wait(5)),
        ({"error": "slow_down"}, Wait(10)),
        ({"error": "slow_down", "interval": 12}, Wait(12)),
        ({"error": "slow_down", "interval": 1}, Wait(10)),
        ({"error": "slow_down", "interval": "x"}, Wait(10)),
        ({"error": "odd", "error_description": "a\nb"}, Refused("odd: a b")),
        ({"error": "odd"}, Refused("odd")),
        ({"access_token": ""}, Refused("GitHub's answer holds neither a token nor an error")),
        ({"error": 7}, Refused("GitHub's answer holds neither a token nor an error")),
    ],
)
def test_what_github_says_means_one_thing(answer: Mapping[str, Any], poll: Poll) -> None:
    assert poll_of(dict(answer), 5) == poll


@pytest.mark.parametrize(
    ("given", "web", "api", "chat"),
    [
        ({}, "https://github.com", "https://api.github.com", "https://api.githubcopilot.com"),
        (
            {"github_url": "https://octo.ghe.com/"},
            "https://octo.ghe.com", "https://api.octo.ghe.com", "https://copilot-api.octo.ghe.com",
        ),
        (
            {"github_url": "https://git.corp", "github_api_url": "https://git.corp/api/v3"},
            "https://git.corp", "https://git.corp/api/v3", "https://copilot-api.git.corp",
        ),
    ],
)  # fmt: skip
def test_an_enterprise_is_found_by_its_address(
    given: dict[str, str], web: str, api: str, chat: str
) -> None:
    found = places(ProviderSettings(name="copilot", type="copilot", **given))  # type: ignore[arg-type]  # settings of tests
    assert (found.web, found.api, found.chat) == (web, api, chat)
