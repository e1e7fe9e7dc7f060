"""How wide a provider's door is after what happened, as tables."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_batch.models.throttle import (
    COOL_DOWN_S,
    WIDEST,
    Throttle,
    denied,
    kept_of,
    refused,
    replied,
)


@pytest.mark.parametrize(
    ("limit", "under_way", "left", "width"),
    [
        (10.0, 7, None, 10),  # under 80 % used: no increase
        (10.0, 8, None, 10),  # a tenth of a request more
        (9.95, 8, None, 10),
        (1.0, 1, None, 2),
        (2.0, 2, None, 2),
        (10.0, 10, 1.0, 10),
        (10.0, 10, 0.11, 10),
        (10.0, 10, 0.10, 6),
        (10.0, 10, 0.06, 6),
        (10.0, 10, 0.05, 4),
        (10.0, 10, 0.01, 2),
        (10.0, 10, 0.0, 2),
        (1.0, 1, 0.0, 1),  # never none: only the circuit does that
        (float(WIDEST), WIDEST, None, WIDEST),
    ],
)
def test_a_reply_widens_a_used_door_and_low_quotas_narrow_it(
    limit: float, under_way: int, left: float | None, width: int
) -> None:
    assert replied(Throttle(limit=limit), under_way, left).width == width


def test_a_round_of_replies_adds_about_one_request() -> None:
    throttle = Throttle(limit=8.0)
    for _ in range(8):
        throttle = replied(throttle, 8, None)

    assert 8.9 < throttle.limit <= 9.0


def test_a_quota_that_recovers_gives_the_whole_width_back() -> None:
    low = replied(Throttle(limit=20.0), 1, 0.05)
    silent = replied(low, 1, None)

    assert (low.width, silent.width, replied(silent, 1, 0.5).width) == (8, 8, 20)


@pytest.mark.parametrize(
    ("limit", "under_way", "width"),
    [(16.0, 16, 12), (16.0, 10, 8), (16.0, 1, 1), (16.0, 0, 1), (1.0, 1, 1), (5.0, 5, 4)],
)
def test_a_refusal_takes_a_fifth_of_what_was_used(limit: float, under_way: int, width: int) -> None:
    after = refused(Throttle(limit=limit), under_way, sent_at=5, now=6, wait=None)

    assert after.width == width
    assert after.cool_until == 6 + COOL_DOWN_S


def test_a_refusal_takes_a_fifth_of_what_low_quotas_had_left() -> None:
    low = replied(Throttle(limit=20.0), 1, 0.05)

    assert refused(low, 8, sent_at=1, now=2, wait=None).width == 6


@pytest.mark.parametrize(("wait", "until"), [(None, 115.0), (0.0, 100.0), (40.0, 140.0)])
def test_the_servers_own_word_is_the_cool_down(wait: float | None, until: float) -> None:
    assert refused(Throttle(), 4, sent_at=99, now=100, wait=wait).cool_until == until


def test_refusals_of_one_burst_count_once_and_the_longest_wait_holds() -> None:
    first = refused(Throttle(limit=20.0), 20, sent_at=0, now=1, wait=30)
    second = refused(first, 19, sent_at=0.5, now=1.5, wait=2)
    later = refused(second, 10, sent_at=40, now=41, wait=1)

    assert (first.width, second.width, later.width) == (16, 16, 8)
    assert (second.cool_until, later.cool_until) == (31, 42)


def test_two_terminal_errors_in_a_row_open_the_circuit_for_good() -> None:
    once = denied(Throttle())
    mended = replied(once, 1, None)
    again = denied(mended)
    opened = denied(again)

    assert [t.is_open for t in (once, mended, again, opened)] == [False, False, False, True]
    assert (again.width, opened.width) == (16, 0)
    assert replied(opened, 1, None).is_open


@given(st.floats(0, 1), st.floats(0, 1))
def test_less_of_a_quota_never_leaves_more(one: float, other: float) -> None:
    low, high = sorted((one, other))

    assert 0 < kept_of(low) <= kept_of(high) <= 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reply"), st.integers(0, 40), st.none() | st.floats(0, 1)),
        st.tuples(st.just("refuse"), st.integers(0, 40), st.none() | st.floats(0, 1e9)),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_somebody_is_admitted_sooner_or_later(
    steps: list[tuple[str, int, float | None]],
) -> None:
    throttle = Throttle()
    for now, (what, under_way, figure) in enumerate(steps):
        if what == "reply":
            throttle = replied(throttle, under_way, figure)
        else:
            throttle = refused(throttle, under_way, sent_at=now, now=now, wait=figure)
        assert 1 <= throttle.width <= WIDEST
        assert throttle.cool_until < math.inf
