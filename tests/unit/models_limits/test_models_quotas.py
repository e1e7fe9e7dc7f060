"""Headers of rate limits, as vendors send them, and as nobody should."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.models.quotas import Quota, least_left, quotas_of

ANTHROPIC = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2026-01-02T03:04:05Z",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-input-tokens-remaining": "1500",
    "anthropic-ratelimit-output-tokens-limit": "8000",
    "anthropic-ratelimit-output-tokens-remaining": "8000",
    "request-id": "req_1",
}
OPENAI = {
    "x-ratelimit-limit-requests": "10000",
    "x-ratelimit-remaining-requests": "9999",
    "x-ratelimit-reset-requests": "6ms",
    "x-ratelimit-limit-tokens": "200000",
    "x-ratelimit-remaining-tokens": "0",
    "x-ratelimit-reset-tokens": "1m3.5s",
}


@pytest.mark.parametrize(
    ("headers", "quotas", "left"),
    [
        (
            ANTHROPIC,
            (
                Quota("input-tokens", 30000, 1500),
                Quota("output-tokens", 8000, 8000),
                Quota("requests", 50, 49),
            ),
            0.05,
        ),
        (OPENAI, (Quota("requests", 10000, 9999), Quota("tokens", 200000, 0)), 0.0),
        ({"x-ratelimit-limit": "20", "x-ratelimit-remaining": "5"}, (Quota("", 20, 5),), 0.25),
        (
            {
                "x-ratelimit-limit-requests-day": "14400",
                "x-ratelimit-remaining-requests-day": "14400.0",
            },
            (Quota("requests-day", 14400, 14400),),
            1.0,
        ),
        ({"x-ratelimit-remaining-requests": "5"}, (), None),
        ({"x-ratelimit-limit": "0", "x-ratelimit-remaining": "0"}, (), None),
        ({"x-ratelimit-limit": "-1", "x-ratelimit-remaining": "1"}, (), None),
        ({"x-ratelimit-limit": "ten", "x-ratelimit-remaining": "nan"}, (), None),
        ({"x-ratelimit-limit": "1" * 400, "x-ratelimit-remaining": "1"}, (), None),
        ({"x-ratelimit-limit": "5", "x-ratelimit-remaining": "7"}, (Quota("", 5, 7),), 1.0),
        ({"x-ratelimit-limit": "5;w=60", "x-ratelimit-remaining": "7"}, (), None),
        ({}, (), None),
    ],
)
def test_quotas_are_read_from_headers(
    headers: dict[str, str], quotas: tuple[Quota, ...], left: float | None
) -> None:
    assert quotas_of(headers) == quotas
    assert least_left(quotas) == left


NAMES = st.one_of(
    st.sampled_from([*ANTHROPIC, *OPENAI]),
    st.text().map(lambda text: f"x-ratelimit-limit-{text}"),
    st.text(),
)


@given(st.dictionaries(NAMES, st.text() | st.from_regex(r"-?\d+(\.\d*)?", fullmatch=True)))
def test_any_headers_give_shares_or_nothing(headers: dict[str, str]) -> None:
    left = least_left(quotas_of(headers))

    assert left is None or 0 <= left <= 1
