"""A run beside its baseline: what changed, what only one side has, and what the gates say."""

from decimal import Decimal
from typing import Any

import pytest

import report_rows as rows
from harness_batch_reports import comparison_pages
from harness_batch_reports.comparison import Comparison, Gate, compare
from hostile_texts import HOSTILE
from report_samples import read

STRICT = Gate(no_new_failures=True, max_cost_increase=Decimal("0.2"))


def run(*sessions: dict[str, Any]) -> Any:
    return read({"report_run": [rows.run()], "report_session": sessions})


def of(comparison: Comparison) -> dict[str, str]:
    return {item.key.rpartition("=")[2]: item.change for item in comparison.items}


def failed(name: str, **changes: Any) -> dict[str, Any]:
    return rows.session(name, status="failed", reason="check:tests", **changes)


def test_every_item_is_told_by_what_became_of_it() -> None:
    now = run(
        failed("broke"), failed("bad"), rows.session("mended"), rows.session("same"),
        rows.session("new"), failed("newbad"), rows.session("idle", status="skipped"),
    )  # fmt: skip
    before = run(
        rows.session("broke"), failed("bad"), failed("mended"), rows.session("same"),
        rows.session("gone"), rows.session("idle"),
    )  # fmt: skip
    compared = compare(now, before)
    assert of(compared) == {
        "broke": "new failure", "newbad": "new failure", "bad": "still failing",
        "idle": "not run", "gone": "only in baseline", "new": "only in run", "mended": "fixed",
        "same": "same",
    }  # fmt: skip
    assert list(STRICT.refusals(compared)) == [
        "new failures: fix-lint/package=broke, fix-lint/package=newbad"
    ]
    text = comparison_pages.as_text(compared, STRICT)
    assert "only in baseline  fix-lint/package=gone" in text
    assert "only in run       fix-lint/package=new" in text
    assert "same              1 item without any difference" in text
    assert text.endswith("refused: new failures: fix-lint/package=broke, fix-lint/package=newbad\n")


@pytest.mark.parametrize(("cost", "told"), [("1.20", []), ("1.21", ["cost rose by 21.0 %"])])
def test_the_cost_of_shared_items_may_rise_as_far_as_it_is_allowed(
    cost: str, told: list[str]
) -> None:
    now = run(rows.session("a", cost_usd=Decimal(cost)), rows.session("b", cost_usd=Decimal(50)))
    before = run(rows.session("a", cost_usd=Decimal(1)), rows.session("c", cost_usd=Decimal(7)))
    refusals = list(STRICT.refusals(compare(now, before)))
    assert [refusal.partition(" (")[0] for refusal in refusals] == told


@pytest.mark.parametrize("side", ["run", "baseline"])
def test_an_unpriced_call_is_never_compared_as_nothing(side: str) -> None:
    unpriced = run(rows.session("a", cost_usd=None, unpriced_calls=9))
    priced = run(rows.session("a"))
    compared = compare(*((unpriced, priced) if side == "run" else (priced, unpriced)))
    assert compared.costs() is None
    assert list(STRICT.refusals(compared)) == [
        "the costs cannot be compared: some calls have no price"
    ]
    page = comparison_pages.as_json(compared, STRICT)
    assert page["items"][0][side]["cost_usd"] is None
    assert page["ok"] is False
    assert "unpriced" in comparison_pages.as_text(compared, Gate())


def test_a_baseline_that_cost_nothing_allows_no_increase() -> None:
    free = run(rows.session("a", cost_usd=Decimal(0)))
    assert list(STRICT.refusals(compare(free, free))) == []
    told = list(STRICT.refusals(compare(run(rows.session("a")), free)))
    assert told == ["cost rose from nothing (allowed: 20 %): 0 to 0.1874 USD"]


def test_figures_and_files_that_differ_are_shown() -> None:
    now = run(rows.session("a", steps=18, input_tokens=1000, output_tokens=0, denials=2,
                           patch_paths=["src/a.py", "src/b.py"]))  # fmt: skip
    before = run(rows.session("a", steps=9, input_tokens=500, output_tokens=0,
                              patch_paths=["src/a.py", "src/c.py"]))  # fmt: skip
    text = comparison_pages.as_text(compare(now, before), Gate())
    assert "tokens 500 -> 1000 (+100 %), steps 9 -> 18 (+100 %), denials 0 -> 2" in text
    assert "files + src/b.py" in text
    assert "files - src/c.py" in text


def test_an_item_of_several_sessions_is_as_good_as_its_worst() -> None:
    twice = [rows.session("a"), failed("a", session_id="ses_2")]
    compared = compare(run(*twice), run(rows.session("a")))
    assert of(compared) == {"a": "new failure"}
    assert "1 of 2 passed" in comparison_pages.as_text(compared, Gate())


@pytest.mark.parametrize("text", HOSTILE)
def test_what_agents_wrote_stays_inert(text: str) -> None:
    text = text.encode(errors="replace").decode()
    now = run(failed("a", item_key=text, patch_paths=[text]))
    compared = compare(now, run(rows.session("b")))
    for page in (
        comparison_pages.as_text(compared, STRICT),
        comparison_pages.as_markdown(compared, STRICT),
    ):
        assert "\x1b" not in page
        assert not any(line.lstrip().startswith(("::", "##[")) for line in page.splitlines())
