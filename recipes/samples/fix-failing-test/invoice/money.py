"""Amounts of money as whole cents, so that nothing is lost to rounding."""


def split(cents: int, parts: int) -> list[int]:
    """Split an amount into shares that differ by at most one cent, larger shares first.

    Together the shares are the whole amount.
    """
    if parts < 1:
        raise ValueError("an amount is split into at least one part")
    share = cents // parts
    return [share] * parts


def shown(cents: int, currency: str = "EUR") -> str:
    """An amount as it is printed, e.g. `EUR 12.05` or `EUR -0.50`."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{currency} {sign}{whole}.{rest:02d}"
