"""The small parts: figures, reasons, lines that allow, harmless text."""

import json
from decimal import Decimal

import pytest
import yaml
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import report_samples
from harness_batch_reports import figures, hostile, reasons
from harness_batch_reports.allow import allowing, by_agent
from harness_batch_reports.answers import answer_text
from harness_batch_reports.next_steps import next_steps


@pytest.mark.parametrize(
    ("usd", "unpriced", "calls", "shown"),
    [
        ("0.0421", 0, 3, "$0.0421"),
        ("1234.5", 0, 3, "$1,234.50"),
        ("0.00000125", 0, 1, "<$0.0001"),
        ("0", 0, 2, "$0.00"),
        (None, 2, 2, "unpriced"),
        ("0", 2, 2, "unpriced"),
        ("0.5", 1, 3, "$0.5000 + 1 unpriced call"),
        (None, 1, 3, "1 unpriced call"),
        (None, 0, 1, "-"),
        (None, 0, 0, "-"),
        ("0", 0, 0, "-"),
    ],
)
def test_costs_say_what_is_not_known(
    usd: str | None, unpriced: int, calls: int, shown: str
) -> None:
    cost = Decimal(usd) if usd is not None else None
    assert figures.cost(cost, unpriced=unpriced, calls=calls) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "-"), (0.04, "0.0 s"), (9.9, "9.9 s"), (9.97, "10 s"), (59.6, "1 min 00 s"),
     (185.25, "3 min 05 s"), (3_599.9, "1 h 00 min"), (7_320, "2 h 02 min")],
)  # fmt: skip
def test_durations_read_well(seconds: float | None, shown: str) -> None:
    assert figures.duration(seconds) == shown


def test_tokens_and_sizes_read_well() -> None:
    assert [figures.tokens(n) for n in (0, 950, 12_345, 999_949, 999_950)] == [
        "0", "950", "12.3k", "999.9k", "1.00M",
    ]  # fmt: skip
    assert [figures.size(n) for n in (812, 4_200, 3_145_728)] == ["812 B", "4.1 KiB", "3.0 MiB"]


def test_money_as_text_is_exact_without_needless_zeros() -> None:
    shown = [figures.decimal_text(Decimal(text)) for text in ("0.100000000", "5", "1E+2", "0E-9")]
    assert shown == ["0.1", "5", "100", "0"]


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("check:tests", "check.tests", "check tests failed"),
        ("expect:max files", "expect.max_files", "expectation max files does not hold"),
        ("max_steps", "limit.steps", "the step limit was reached"),
        ("permission", "policy.denied", "the rules denied what the agent wanted to do"),
        ("provider_quota", "provider.quota", "the provider account has no credit left"),
        ("provider_strange", "provider.strange", "the provider failed: strange"),
        ("infra.killed", "infra.killed", "the runner was killed"),
        ("empty", "agent.empty", "the agent answered nothing and changed nothing"),
        ("some new\nthing", "infra.some_new_thing", "some new\nthing"),
    ],
)
def test_reasons_have_stable_types_and_words(reason: str, code: str, words: str) -> None:
    found = reasons.of_reason(reason)
    assert (found.type, found.text) == (code, words)


def test_every_documented_type_is_what_a_report_would_write() -> None:
    for reason, code, _ in reasons.documented():
        assert reasons.of_reason(reason).type == code


def test_a_suggested_line_allows_what_was_asked_and_no_wildcard_of_the_agent() -> None:
    report = report_samples.nightly()
    asked = ['bash -c "rm * \U0001f600"', "a\nb: allow", "##vso[x]", "*"]
    denials = tuple(evolve(report.denials[0], pattern=pattern) for pattern in asked)
    (found,) = allowing(evolve(report, denials=denials))
    rules = yaml.safe_load(found.yaml)["permissions"]["bash"]
    assert rules == {pattern.replace("*", "?"): "allow" for pattern in asked}
    assert "##vso[" not in found.yaml
    assert "\nb: allow" not in found.yaml


def test_nothing_is_suggested_against_what_an_agent_denies_itself() -> None:
    report = report_samples.nightly()
    denials = (evolve(report.denials[0], source="agent:plan"),)
    assert allowing(evolve(report, denials=denials)) == ()
    assert by_agent(denials) == ("plan",)


def test_patterns_too_long_or_too_many_are_counted() -> None:
    report = report_samples.nightly()
    patterns = ["x" * 501, *(f"make target{n}" for n in range(40))]
    denials = tuple(evolve(report.denials[0], pattern=pattern) for pattern in patterns)
    (found,) = allowing(evolve(report, denials=denials))
    assert (found.yaml.count(": allow"), found.left_out) == (30, 11)


def test_answers_in_json_are_laid_out_and_prose_is_left_alone() -> None:
    assert json.loads(answer_text('{"a":1}')) == {"a": 1}
    assert answer_text('{"a":1}') == '{\n  "a": 1\n}'
    assert answer_text("[" * 100_000) == "[" * 100_000


def test_a_run_is_resumed_by_its_own_command() -> None:
    commands = [step.command for step in next_steps(report_samples.nightly())]
    assert commands[2] == (
        "harness-batch run recipes/fix-lint.yaml --resume run_01K9Z3NDEKTSV4RRFFQ69G5FAV"
    )


def test_a_run_where_all_is_well_needs_nothing_but_its_patch_applied() -> None:
    steps = next_steps(report_samples.passing())
    assert [step.command for step in steps] == ["harness-batch apply ses_core"]
    assert next_steps(report_samples.review()) == ()


@given(st.text(st.characters(), max_size=400), st.integers(40, 200))
def test_cut_text_fits(text: str, limit: int) -> None:
    assert len(hostile.one_line(text, limit)) <= limit
    assert "\n" not in hostile.one_line(text, limit)
    assert len(hostile.excerpt(text * 3, limit)) <= limit


@given(st.text(st.characters(), max_size=400))
def test_harmless_text_stays_as_it_is(text: str) -> None:
    once = hostile.clean(text)
    assert hostile.clean(once) == once
    assert "\r" not in once


def test_words_of_everybody_are_kept() -> None:
    text = "Größe: 3 € 4\n\tdef f(x): return x::y  # 日本語 👩‍💻 a.py::test_b"
    assert hostile.inert(text) == text
