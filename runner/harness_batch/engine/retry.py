"""When and how long to wait before a model call is tried again. Pure."""

import random

from harness_batch.errors import ProviderError

MAX_TRIES = 8
"""Tries of one step in all."""
FIRST_DELAY_S = 2.0
LONGEST_DELAY_S = 30.0
JITTER = 0.25
"""Up to this share is added, so that sessions do not come back together."""


def delay(error: ProviderError, tries: int, chance: random.Random) -> float | None:
    """Seconds to wait after `tries` failed tries; None when trying again is pointless.

    The server's own word (`retry-after`) wins over the back-off.
    """
    if not error.retryable or tries >= MAX_TRIES:
        return None
    if error.retry_after is not None:
        return error.retry_after
    back_off = min(FIRST_DELAY_S * 2.0 ** (tries - 1), LONGEST_DELAY_S)
    return back_off * (1 + JITTER * chance.random())
