"""What one session may use. Of all who declare a limit the lowest wins; None is no limit."""

import re
from decimal import Decimal

from attrs import asdict, evolve, fields, frozen

BASH_TIMEOUT_SECONDS = 120
"""Default timeout of one shell command."""
BASH_TIMEOUT_MAX_SECONDS = 600
"""The longest timeout that a model may ask for."""

MAX_CHILD_DEPTH = 2
"""Child sessions may have children of their own, and those none."""
MAX_RUNNING_JOBS = 8
"""Background children of one session that run at a time."""

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?")
_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def duration_seconds(text: str) -> float:
    """Seconds of `90`, `90s`, `1.5h`, `7d`. Raises: ValueError when it is no duration."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration such as 90, 30m or 2h")
    return float(found[1]) * _UNIT_SECONDS[found[2] or "s"]


@frozen(kw_only=True)
class Limits:
    """Limits of a session, over all of its attempts and children (steps: without children)."""

    steps: int | None = None
    """Model replies. They bound one conversation; each child has its own."""
    tool_calls: int | None = None
    """Tool calls that were run or refused."""
    tokens: int | None = None
    """Input and output tokens of all model calls together, cache included."""
    cost_usd: Decimal | None = None
    """US dollars, reserved before each model call."""
    seconds: float | None = None
    """Wall time from the session's start, everything included."""
    working_seconds: float | None = None
    """Wall time without waiting for rate limits."""
    output_tokens: int | None = None
    """The most that one model reply may have."""

    def lowest(self, other: "Limits") -> "Limits":
        """Field by field the lower of the two; a declared one beats None."""
        return Limits(
            **{
                name: min((v for v in (mine, getattr(other, name)) if v is not None), default=None)
                for name, mine in asdict(self).items()
            }
        )

    def with_defaults(self) -> "Limits":
        """`DEFAULTS` where nobody declared the key."""
        return evolve(
            self,
            **{
                field.name: getattr(DEFAULTS, field.name)
                for field in fields(Limits)
                if getattr(self, field.name) is None
            },
        )


DEFAULTS = Limits(steps=50, seconds=1800, output_tokens=8000)
