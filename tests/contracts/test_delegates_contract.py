"""What every `Delegates` promises to the tools that hand work to children."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from fakes_children import engine_delegates, memory_delegates
from harness_batch.tools.delegates import Delegates, Errand, NotStarted, Report

Opening = Callable[[Path], AbstractAsyncContextManager[Delegates]]

pytestmark = pytest.mark.parametrize(
    "opening", [engine_delegates, memory_delegates], ids=["engine", "memory"]
)


def errand(prompt: str, agent: str = "helper", **more: Any) -> Errand:
    return Errand(description="a thing", prompt=prompt, agent=agent, **more)


async def test_only_agents_that_the_rules_allow_are_offered(
    opening: Opening, tmp_path: Path
) -> None:
    async with opening(tmp_path) as delegates:
        assert set(delegates.agents()) == {"helper", "other"}
        assert delegates.unfit("helper") is None
        assert delegates.unfit("barred") is None, "the rules say that, not we"
        assert "'nobody'" in str(delegates.unfit("nobody"))


async def test_a_child_that_ends_well_has_answered(opening: Opening, tmp_path: Path) -> None:
    async with opening(tmp_path) as delegates:
        report = await delegates.send(errand("answer forty-two"))

    assert isinstance(report, Report)
    assert (report.state, report.answer) == ("completed", "forty-two")
    assert report.session_id.startswith("ses_")


async def test_a_child_that_fails_is_a_report_and_no_exception(
    opening: Opening, tmp_path: Path
) -> None:
    async with opening(tmp_path) as delegates:
        report = await delegates.send(errand("fail max_steps"))

    assert isinstance(report, Report)
    assert (report.state, report.detail) == ("error", "max_steps: so it is")


async def test_a_child_that_cannot_be_had_is_not_started(opening: Opening, tmp_path: Path) -> None:
    async with opening(tmp_path) as delegates:
        assert await delegates.send(errand("never")) == NotStarted("its model is not granted")


async def test_a_child_goes_on_by_its_id(opening: Opening, tmp_path: Path) -> None:
    async with opening(tmp_path) as delegates:
        first = await delegates.send(errand("answer one"))
        assert isinstance(first, Report)
        second = await delegates.send(errand("answer two", session=first.session_id))
        third = await delegates.send(errand("answer three"))

    assert isinstance(second, Report)
    assert isinstance(third, Report)
    assert (second.session_id, second.answer) == (first.session_id, "two")
    assert third.session_id != first.session_id


async def test_a_stranger_and_a_wrong_agent_do_not_go_on(opening: Opening, tmp_path: Path) -> None:
    async with opening(tmp_path) as delegates:
        known = await delegates.send(errand("answer one"))
        assert isinstance(known, Report)
        unknown = await delegates.send(errand("answer two", session="ses_x"))
        wrong = await delegates.send(errand("answer", agent="other", session=known.session_id))

    assert isinstance(unknown, NotStarted)
    assert "ses_x" in unknown.why
    assert isinstance(wrong, NotStarted)
    assert "'helper'" in wrong.why


async def test_a_background_child_is_running_when_we_go_on(
    opening: Opening, tmp_path: Path
) -> None:
    async with opening(tmp_path) as delegates:
        report = await delegates.send(errand("answer later", background=True))

        assert isinstance(report, Report)
        assert (report.state, report.answer) == ("running", "")


async def test_a_sub_recipe_runs_to_its_end(opening: Opening, tmp_path: Path) -> None:
    async with opening(tmp_path) as delegates:
        report = await delegates.run_recipe("do", {"do": "answer yes"})

    assert isinstance(report, Report)
    assert (report.state, report.answer) == ("completed", "yes")
