"""What a run used, its child sessions included: by model, by tool, and over time.

Tokens in are totals with what came from the cache, durations seconds, money US dollars.
"""

from datetime import datetime
from decimal import Decimal

from attrs import frozen


@frozen(kw_only=True)
class ModelUsage:
    """All requests to one model."""

    model: str
    """`provider/model` as it was asked for."""
    calls: int
    failed: int
    """Refused, cut off, or never answered."""
    input_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    """None: no call had a price."""
    p50_s: float | None
    p95_s: float | None
    """How long a request took."""


@frozen(kw_only=True)
class ToolUsage:
    """All calls of one tool."""

    tool: str
    calls: int
    failed: int
    denied: int
    seconds: float
    output_bytes: int


@frozen(kw_only=True)
class Spend:
    """Money spent in the second `ended_at`."""

    ended_at: datetime
    cost_usd: Decimal


@frozen(kw_only=True)
class Usage:
    """What one run used. `spend` is in order of time."""

    models: tuple[ModelUsage, ...] = ()
    tools: tuple[ToolUsage, ...] = ()
    spend: tuple[Spend, ...] = ()
