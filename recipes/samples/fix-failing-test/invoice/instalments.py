"""Instalments of an invoice."""

from invoice.money import shown, split


def plan(total_cents: int, months: int) -> list[str]:
    """One line for each month's instalment."""
    shares = split(total_cents, months)
    return [f"month {number}: {shown(share)}" for number, share in enumerate(shares, start=1)]
