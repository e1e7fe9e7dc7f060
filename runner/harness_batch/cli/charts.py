"""An answer as bars on a terminal. Colour only where it is wanted; what it says stands beside."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from rich.bar import Bar
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from harness_batch.cli.forms import cell_text
from harness_batch_reports import figures

SHOWN: Final = 40
"""Bars; more are counted."""
_LABEL_WIDTH: Final = 48
_SHARES: Final = {"hit_rate", "pass_rate", "error_rate", "used", "pass_at_k"}
"""Columns from 0 to 1, drawn against 1."""


def bars(
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    *,
    labels: Sequence[str],
    value: str,
) -> Table:
    """A bar for each row. Rows by day are cut at the old end, others at the low end."""
    at = [columns.index(name) for name in labels]
    place = columns.index(value)
    by_day = "day" in labels and columns.index("day") == 0
    shown = list(rows[-SHOWN:] if by_day else rows[:SHOWN])
    sizes = [_size(row[place]) for row in shown]
    full = max([1.0 if value in _SHARES else 0.0, *sizes]) or 1.0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in labels:
        table.add_column(name, max_width=_LABEL_WIDTH, no_wrap=True, overflow="ellipsis")
    table.add_column(value, justify="right", no_wrap=True)
    table.add_column("", ratio=1, min_width=10)
    for row, size in zip(shown, sizes, strict=True):
        cells: list[RenderableType] = [Text(cell_text(row[i])) for i in at]
        table.add_row(*cells, figure(value, row[place]), Bar(full, 0, size, color="cyan"))
    return table


def left_out(rows: Sequence[tuple[Any, ...]]) -> int:
    """How many rows have no bar."""
    return max(0, len(rows) - SHOWN)


def figure(name: str, value: Any) -> str:  # noqa: ANN401 - a cell
    """A number in the unit that its column's name tells."""
    if value is None:
        return "unpriced" if "usd" in name else "-"
    if name in _SHARES:
        return f"{100 * value:.1f} %"
    if "usd" in name:
        sign = "-" if value < 0 else ""
        return sign + figures.money(abs(Decimal(str(value))))
    if name.endswith("_s"):
        return figures.duration(float(value))
    if name.endswith("_tokens"):
        return figures.tokens(int(value))
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def terminal_width(console: Console) -> int:
    """Columns to draw in; without a terminal a plain hundred."""
    return console.width if console.is_terminal else 100


def _size(value: Any) -> float:  # noqa: ANN401 - a cell
    return 0.0 if value is None else abs(float(value))
