"""A key that was changed in its file while the run goes on: taken up once, by all sessions."""

from pathlib import Path

import pytest
import trio

from harness_batch.config.auth_file import read_stored, store_key
from harness_batch.config.record import KeyOrigin, ProviderSettings
from harness_batch.errors import AuthFailed
from harness_batch.messages import ModelRef
from harness_batch.models.access import Keyring
from harness_batch.models.table import connect
from wire import Reply, Say, Server, serve
from wire.transcripts import replies, request

OLD, NEW = "sk-old-0123456789", "sk-new-0123456789"


def settings_for(server: Server, file: Path) -> ProviderSettings:
    return ProviderSettings(
        name="mine",
        type="anthropic",
        base_url=server.anthropic_url,
        api_key=read_stored(file).keys["mine"],
        key_origin=KeyOrigin(place=str(file), file=file, stored=True),
    )


async def test_a_rotated_key_is_taken_up_by_all_sessions_and_known_as_a_secret(
    tmp_path: Path,
) -> None:
    file, learned = tmp_path / "auth.json", list[str]()
    store_key(file, "mine", OLD)
    async with serve([Reply(Say("Hi."))], key=NEW) as server:
        settings, keyring = settings_for(server, file), Keyring(learned.append)
        store_key(file, "mine", NEW)

        async def session() -> None:
            model = connect(ModelRef("mine", "m"), settings, keyring)
            with pytest.raises(AuthFailed, match="401"):
                await replies(model, request())
            assert await model.renew()
            await replies(model, request())
            await model.aclose()

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(session)
        later = connect(ModelRef("mine", "m"), settings, keyring)
        await replies(later, request())
        await later.aclose()
    assert learned == [NEW]
    assert len([seen for seen in server.requests if seen.headers["x-api-key"] == OLD]) <= 5


@pytest.mark.parametrize("change", ["none", "gone", "open"])
async def test_a_file_that_offers_no_other_key_renews_nothing(tmp_path: Path, change: str) -> None:
    file = tmp_path / "auth.json"
    store_key(file, "mine", OLD)
    async with serve([Reply(Say("Hi."))], key=NEW) as server:
        model = connect(ModelRef("mine", "m"), settings_for(server, file))
        if change == "gone":
            file.unlink()
        if change == "open":
            store_key(file, "mine", NEW)
            file.chmod(0o644)
        with pytest.raises(AuthFailed, match=f"check {file}"):
            await replies(model, request())
        assert not await model.renew()
        await model.aclose()
    assert len(server.requests) == 1


async def test_a_key_that_came_from_no_file_fails_at_once() -> None:
    async with serve([Reply(Say("Hi."))], key=NEW) as server:
        settings = ProviderSettings(
            name="mine", type="anthropic", base_url=server.anthropic_url, api_key=OLD
        )
        model = connect(ModelRef("mine", "m"), settings)
        with pytest.raises(AuthFailed):
            await replies(model, request())
        assert not await model.renew()
        await model.aclose()
