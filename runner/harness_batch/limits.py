"""What one session may use. Of all who declare a limit the lowest wins; None is no limit."""

from decimal import Decimal

from attrs import asdict, evolve, fields, frozen

BASH_TIMEOUT_SECONDS = 120
"""Default timeout of one shell command."""
BASH_TIMEOUT_MAX_SECONDS = 600
"""The longest timeout that a model may ask for."""


@frozen(kw_only=True)
class Limits:
    """Limits of a session, over all of its attempts and children."""

    steps: int | None = None
    """Model replies."""
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
