"""A refused credential: renewed once a step where that can be, else the end at once."""

from pathlib import Path

import pytest

from fakes import ANSWER, Said, Studio, call, finish
from harness_batch.errors import AuthFailed
from harness_batch.events import ModelCallClosed, Notice
from harness_batch.models.protocol import ReplyStarted

REFUSED: Said = (AuthFailed("x: HTTP 401", status=401),)
WORKING: Said = (ReplyStarted(200), *call(1), finish("tool_calls"))


async def test_a_renewed_credential_is_tried_and_both_requests_are_rows(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [REFUSED, ANSWER])
    studio.model.renewals = 1

    ended = await studio.run()

    assert ended.status == "passed"
    rows = [event.call for event in studio.log.of(ModelCallClosed)]
    assert [(row.step, row.try_, row.error_kind) for row in rows] == [(1, 1, "auth"), (1, 2, None)]
    (notice,) = (event.text for event in studio.log.of(Notice))
    assert notice == "x: HTTP 401; trying once more with a renewed credential"


async def test_each_step_may_renew_since_tokens_end_again_and_again(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [REFUSED, WORKING, REFUSED, ANSWER])
    studio.model.renewals = 9

    ended = await studio.run()

    assert (ended.status, len(studio.model.requests)) == ("passed", 4)


@pytest.mark.parametrize("renewals", [0, 9])
async def test_a_credential_that_stays_refused_ends_the_session(
    tmp_path: Path, renewals: int
) -> None:
    studio = Studio(tmp_path, [REFUSED] * 5)
    studio.model.renewals = renewals

    ended = await studio.run()

    assert (ended.status, ended.reason) == ("errored", "provider_auth")
    assert len(studio.model.requests) == (2 if renewals else 1)


async def test_what_is_forbidden_is_not_tried_with_another_credential(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [(AuthFailed("x: HTTP 403", status=403),)])
    studio.model.renewals = 9

    ended = await studio.run()

    assert (ended.reason, studio.model.renewals) == ("provider_auth", 9)
