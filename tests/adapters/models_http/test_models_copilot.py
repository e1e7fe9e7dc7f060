"""Copilot against a loopback GitHub: exchange, renewal, headers, and who is told what."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from harness_batch.config.auth_file import read_stored, store_key
from harness_batch.config.keys import with_keys
from harness_batch.config.providers import settings as settings_of
from harness_batch.config.record import ProviderSettings
from harness_batch.errors import (
    AuthFailed,
    NetworkFailure,
    ProtocolBroken,
    RateLimited,
    Unavailable,
)
from harness_batch.messages import ModelRef, Text
from harness_batch.models.access import Keyring
from harness_batch.models.copilot import request_headers
from harness_batch.models.github import is_safe
from harness_batch.models.protocol import Finish, Model
from harness_batch.models.table import connect
from wire import Call, Refuse, Reply, Say
from wire.github import LOGIN, GitHub
from wire.transcripts import heard, replies, request, turn, user

REPLIES = (Reply(Call("bash", {"command": "ls"})), Reply(Say("Done.")))


def settings_for(github: GitHub, **more: Any) -> ProviderSettings:
    given: dict[str, Any] = {"api_key": LOGIN, **github.settings(), **more}
    return ProviderSettings(name="copilot", **given)


def connected(github: GitHub, keyring: Keyring | None = None, **more: Any) -> Model:
    return connect(ModelRef("copilot", "gpt-9"), settings_for(github, **more), keyring)


async def test_a_session_exchanges_once_and_asks_where_the_token_says() -> None:
    github, learned = GitHub(REPLIES), list[str]()
    async with github.served() as server:
        model = connected(github, Keyring(learned.append))
        first = await replies(model, request())
        again = await replies(model, request(user(0, "Begin."), heard(first, 1)))
        await model.aclose()
    assert isinstance(again[-1], Finish)
    assert len(github.exchanges) == 1
    assert [seen.path for seen in server.requests] == [
        "/api/copilot_internal/v2/token", "/v1/chat/completions", "/v1/chat/completions",
    ]  # fmt: skip
    asked, *chats = (seen.headers for seen in server.requests)
    assert asked["authorization"] == f"token {LOGIN}"
    assert {chat["authorization"] for chat in chats} == {f"Bearer {github.exchanges[0]}"}
    assert [chat["x-initiator"] for chat in chats] == ["user", "agent"]
    assert {chat["copilot-integration-id"] for chat in chats} == {"vscode-chat"}
    assert all(chat["editor-version"].startswith("harness-batch/") for chat in chats)
    assert all(LOGIN not in str(chat) for chat in chats)
    assert learned == [github.exchanges[0], github.exchanges[0].rpartition(":")[2]]


async def test_configured_headers_and_address_go_before_the_usual_ones() -> None:
    github = GitHub(REPLIES, token={"endpoints": {"api": "http://127.0.0.1:9/v1"}})
    async with github.served() as server:
        base_url = f"http://127.0.0.1:{github.port}/v1"
        headers = {"Copilot-Integration-Id": "mine", "Editor-Version": "mine/1"}
        model = connected(github, base_url=base_url, headers=headers)
        await replies(model, request())
        await model.aclose()
    for seen in server.requests:
        assert seen.headers["copilot-integration-id"] == "mine"
        assert seen.headers["editor-version"] == "mine/1"


async def test_an_expired_token_is_renewed_once_however_many_sessions_it_was_refused_to() -> None:
    github, keyring = GitHub(REPLIES), Keyring()
    models: list[Model] = []

    async def session() -> None:
        model = connected(github, keyring)
        models.append(model)
        await replies(model, request())

    async def refused(model: Model) -> None:
        with pytest.raises(AuthFailed) as caught:
            await replies(model, request())
        assert caught.value.status == 401
        assert github.exchanges[0] not in str(caught.value)

    async def renewed(model: Model) -> None:
        assert await model.renew()
        await replies(model, request())
        await model.aclose()

    async with github.served():
        await at_once(8, session)
        github.expired.add(github.exchanges[0])
        for step in (refused, renewed):
            async with trio.open_nursery() as nursery:
                for model in models:
                    nursery.start_soon(step, model)
    assert len(github.exchanges) == 2


async def at_once(number: int, work: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(number):
            nursery.start_soon(work)


async def test_a_token_is_renewed_before_it_ends_and_used_on_when_that_fails(
    mock_clock: MockClock,
) -> None:
    github = GitHub(REPLIES)
    async with github.served():
        model = connected(github)
        for _ in range(3):
            await replies(model, request())
        mock_clock.jump(1501)
        await replies(model, request())
        assert len(github.exchanges) == 2
        github.trouble = Refuse(503, "down")
        mock_clock.jump(1501)
        await replies(model, request())
        mock_clock.jump(60)
        with pytest.raises(Unavailable, match="HTTP 503"):
            await replies(model, request())
        github.trouble = None
        await replies(model, request())
        assert len(github.exchanges) == 3
        await model.aclose()


@pytest.mark.parametrize(
    ("told", "lasts"),
    [
        ({"refresh_in": 300}, 300),
        ({"refresh_in": None, "expires_at": 1}, 60),
        ({"refresh_in": None, "expires_at": None}, 1440),
        ({"refresh_in": "x", "expires_at": -1}, 1440),
    ],
)
async def test_how_long_a_token_is_used_is_what_the_token_says_if_it_says_something(
    told: dict[str, Any], lasts: float, mock_clock: MockClock
) -> None:
    github = GitHub(REPLIES, token=told)
    async with github.served():
        model = connected(github)
        await replies(model, request())
        mock_clock.jump(lasts - 1)
        await replies(model, request())
        assert len(github.exchanges) == 1
        mock_clock.jump(2)
        await replies(model, request())
        assert len(github.exchanges) == 2
        await model.aclose()


@pytest.mark.parametrize(
    ("trouble", "kind", "told"),
    [
        (Refuse(401, {"message": f"Bad credentials {LOGIN}"}), AuthFailed, "Bad credentials ***"),
        (Refuse(403, {"message": "No access"}), AuthFailed, "log in again"),
        (Refuse(403, {"message": "API rate limit exceeded"}), RateLimited, "rate limit"),
        (Refuse(404, {"message": "Not Found"}), AuthFailed, "no Copilot for this login"),
        (Refuse(429, {"message": "slow"}, {"retry-after": "3"}), RateLimited, "slow"),
        (Refuse(503, "down"), Unavailable, "HTTP 503"),
        (Refuse(200, "<html>"), ProtocolBroken, "not a JSON object"),
        (Refuse(200, {"tokens": "x"}), ProtocolBroken, "no Copilot token"),
        (Refuse(200, {"token": "a b"}), ProtocolBroken, "no Copilot token"),
        (Refuse(200, {"token": "abc123", "endpoints": {"api": "ftp://x"}}), ProtocolBroken, "ftp"),
    ],
)
async def test_an_exchange_that_fails_is_a_typed_error_without_the_login(
    trouble: Refuse, kind: type[Exception], told: str
) -> None:
    github = GitHub(REPLIES, trouble=trouble)
    async with github.served() as server:
        model = connected(github)
        with pytest.raises(kind, match=r"^copilot: ") as caught:
            await replies(model, request())
        assert told in str(caught.value)
        assert LOGIN not in str(caught.value)
        await model.aclose()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("url", "api", "safe"),
    [
        ("https://api.individual.githubcopilot.com", "https://api.github.com", True),
        ("http://api.individual.githubcopilot.com", "https://api.github.com", False),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:8/api", True),
        ("https://[", "https://api.github.com", False),
        ("https://", "https://api.github.com", False),
        ("file:///etc/passwd", "https://api.github.com", False),
    ],
)
def test_a_token_goes_in_the_clear_only_where_github_is_spoken_to_so(
    url: str, api: str, safe: bool
) -> None:
    assert is_safe(url, api) is safe


async def test_a_login_that_github_refuses_is_not_asked_again_by_anybody() -> None:
    github = GitHub(REPLIES, logins=set())
    async with github.served() as server:
        keyring = Keyring()
        for _ in range(3):
            model = connected(github, keyring)
            with pytest.raises(AuthFailed, match="401"):
                await replies(model, request())
            assert not await model.renew()
            await model.aclose()
    assert len(server.requests) == 1


async def test_a_new_login_in_the_meantime_is_taken_up(tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    store_key(file, "copilot", "gho_oldLogin0123456789")
    github, learned = GitHub(REPLIES), list[str]()
    async with github.served():
        trees = with_keys({"copilot": github.settings()}, {}, read_stored(file))
        settings = settings_of(trees)["copilot"]
        store_key(file, "copilot", LOGIN)
        model = connect(ModelRef("copilot", "m"), settings, Keyring(learned.append))
        await replies(model, request())
        await model.aclose()
    assert learned[0] == LOGIN


async def test_without_a_login_nothing_is_sent() -> None:
    github = GitHub(REPLIES)
    async with github.served() as server:
        model = connected(github, api_key=None)
        with pytest.raises(AuthFailed, match=r"no GitHub login; .*auth login copilot"):
            model.demand()
        with pytest.raises(AuthFailed):
            await replies(model, request())
        await model.aclose()
    assert not server.requests


async def test_a_github_that_cannot_be_reached_is_a_network_failure() -> None:
    github = GitHub(REPLIES)
    async with github.served():
        settings = settings_for(github)
    model = connect(ModelRef("copilot", "m"), settings)
    with pytest.raises(NetworkFailure, match=r"cannot connect to 127\.0\.0\.1"):
        await replies(model, request())
    await model.aclose()


def test_images_are_told_by_a_header_and_texts_about_them_are_not() -> None:
    asked = request(turn(0, "user", Text(text='"type":"image_url"')))
    escaped = b'{"content":"\\"type\\":\\"image_url\\""}'
    assert "copilot-vision-request" not in request_headers(asked, escaped)
    shown = b'{"content":[{"type":"image_url","image_url":{"url":"data:"}}]}'
    assert request_headers(evolve(asked), shown)["copilot-vision-request"] == "true"
