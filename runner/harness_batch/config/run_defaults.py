"""Defaults of `run` options from several files; a repository's may only lower a bound."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from harness_batch.limits import duration_seconds

BOUNDS = ("max_cost", "max_failures", "max_time")
"""Options of which the lower value is the tighter; none has a default."""
GATHERED = ("deny",)
"""Options that add up, so that a repository's never take the place of the user's."""


def merged_run(
    before: Mapping[str, Any], declared: Mapping[str, Any], *, trusted: bool
) -> dict[str, Any]:
    """`declared` on top of `before`."""
    merged = {**before, **declared}
    if trusted:
        return merged
    for option in BOUNDS:
        if option in before and option in declared:
            merged[option] = min(before[option], declared[option], key=_amount)
    for option in GATHERED:
        if option in before and option in declared:
            merged[option] = [*_words(before[option]), *_words(declared[option])]
    return merged


def _amount(value: int | float | str) -> Decimal:
    return Decimal(str(duration_seconds(value) if isinstance(value, str) else value))


def _words(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
