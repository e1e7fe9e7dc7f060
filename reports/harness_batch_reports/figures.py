"""Figures as people read them: money, tokens, times. The unknown is said, never shown as 0."""

from decimal import Decimal, InvalidOperation


def money(usd: Decimal) -> str:
    """US dollars with as many digits as tell something: `$12.40`, `$0.0421`, `<$0.0001`."""
    if usd == 0:
        return "$0.00"
    if usd < Decimal("0.0001"):
        return "<$0.0001"
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"


def cost(usd: Decimal | None, *, unpriced: int, calls: int) -> str:
    """The cost of `calls` model calls, of which `unpriced` have no price; a dash for nothing."""
    if unpriced and (not usd or unpriced >= calls):
        return "unpriced" if unpriced >= calls else count(unpriced, "unpriced call")
    if unpriced and usd:
        return f"{money(usd)} + {count(unpriced, 'unpriced call')}"
    return "-" if usd is None or calls == 0 else money(usd)


def cost_text(usd: object) -> str:
    """The cost of a step as a part's body holds it, decimal text; anything else is unpriced."""
    try:
        return money(Decimal(usd)) if isinstance(usd, str) else "unpriced"
    except InvalidOperation:
        return "unpriced"


def tokens(number: int) -> str:
    """`950`, `12.3k`, `1.20M`."""
    if number < 1_000:
        return str(number)
    if number < 999_950:
        return f"{number / 1_000:.1f}k"
    return f"{number / 1_000_000:.2f}M"


def share(part: int, whole: int) -> str:
    """`78 %`; a dash where there is no whole."""
    return f"{100 * part / whole:.0f} %" if whole > 0 else "-"


def duration(seconds: float | None) -> str:
    """`0.4 s`, `42 s`, `3 min 05 s`, `1 h 02 min`; a dash when not known."""
    if seconds is None:
        return "-"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60:02d} min"


def size(number: int) -> str:
    """Bytes: `812 B`, `4.1 KiB`, `3.0 MiB`."""
    if number < 1_024:
        return f"{number} B"
    if number < 1_024 * 1_024:
        return f"{number / 1_024:.1f} KiB"
    return f"{number / 1_024 / 1_024:.1f} MiB"


def count(number: int, noun: str) -> str:
    """`1 session`, `3 sessions`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def decimal_text(usd: Decimal | None) -> str | None:
    """Money as exact decimal text for JSON: no exponent, no needless zeros."""
    if usd is None:
        return None
    text = f"{usd:f}"
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text
