"""How many requests a provider gets at a time, and when the next may go out. Pure: no waiting.

Additive increase, multiplicative decrease, as TCP does it: a reply adds one request a round, and
only while most of the width is used; a refusal takes a fifth away and nothing goes out until it
has cooled down. Of refusals that answer requests of one burst the first one counts. Two errors in a
row that no waiting mends (a refused key, an exhausted quota) open the circuit, for good.
"""

import math
from typing import Literal

from attrs import evolve, frozen

INCREASE = 1.0
"""Requests that a whole round of replies adds."""
USED = 0.8
"""Only when this share of the width is used."""
DECREASE = 0.8
COOL_DOWN_S = 15.0
"""Without a word of the server's (`retry-after`)."""
WIDEST = 1024
FIRST_WIDTH = 16
"""At least; more when more sessions run at a time. Until a provider refuses, nothing is held."""
TERMINAL_ERRORS = 2
"""In a row."""
HEADROOM = ((0.01, 0.2), (0.05, 0.4), (0.10, 0.6))
"""At most this share of a quota is left: this share of the width stays."""

Cause = Literal["rate_limit", "overloaded", "headroom", "increase", "auth", "quota"]


@frozen(kw_only=True)
class Throttle:
    """One provider account's state. Times are on the caller's clock, in seconds."""

    limit: float = float(FIRST_WIDTH)
    """Requests at a time, as replies and refusals have made it."""
    kept: float = 1.0
    """The share of it that low quotas leave."""
    cool_until: float = -math.inf
    cut_at: float = -math.inf
    """When the limit was last lowered; a refusal of an older request lowers it no further."""
    terminal: int = 0
    """Errors in a row that no waiting mends."""

    @property
    def is_open(self) -> bool:
        """The circuit is open: nothing is admitted any more."""
        return self.terminal >= TERMINAL_ERRORS

    @property
    def width(self) -> int:
        """Requests that may be under way at a time; 0 when the circuit is open."""
        return 0 if self.is_open else max(1, math.floor(self.limit * self.kept))


def replied(throttle: Throttle, under_way: int, left: float | None) -> Throttle:
    """After a reply. `under_way` counts its request too; `left`: the least share of a quota."""
    kept = throttle.kept if left is None else kept_of(left)
    terminal = throttle.terminal if throttle.is_open else 0
    limit = throttle.limit
    if kept == 1.0 and under_way >= USED * throttle.width:
        limit = min(limit + INCREASE / limit, float(WIDEST))
    return evolve(throttle, limit=limit, kept=kept, terminal=terminal)


def refused(
    throttle: Throttle, under_way: int, *, sent_at: float, now: float, wait: float | None
) -> Throttle:
    """After a 429 or 529; `wait` is the server's own word in seconds."""
    cool_until = max(throttle.cool_until, now + (COOL_DOWN_S if wait is None else wait))
    if sent_at < throttle.cut_at:
        return evolve(throttle, cool_until=cool_until)
    # What is not used is no width to take a fifth of.
    limit = max(1.0, DECREASE * min(throttle.limit, max(1, under_way) / throttle.kept))
    return evolve(throttle, limit=limit, cool_until=cool_until, cut_at=now)


def denied(throttle: Throttle) -> Throttle:
    """After an error that no waiting mends."""
    return evolve(throttle, terminal=throttle.terminal + 1)


def kept_of(left: float) -> float:
    """The share of the width that stays when this share of a quota is left."""
    return next((kept for low, kept in HEADROOM if left <= low), 1.0)
