"""Values of records become values of columns, whatever a model or provider sent.

Lone surrogates become U+FFFD, numbers beyond a column's range its end, NaN and infinities NULL,
times that are none NULL: a row with one odd value beats a database that stops.
"""

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from harness_batch.codec import as_json

Value: TypeAlias = Any
"""A field of a record, or what DuckDB's appender takes for the column."""

_BIGINT_MAX = 2**63 - 1
_MONEY_MAX = Decimal("999999999.999999999")
_MONEY_UNIT = Decimal("1e-9")


def _text(value: Value) -> Value:
    text = str(value)
    return text if text.isascii() else _without_surrogates(text)


def _without_surrogates(text: str) -> str:
    """Two surrogates that make a pair become their character, as in the journal."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _json(value: Value) -> Value:
    text = as_json(value).decode()
    if "\\ud" in text:
        # DuckDB refuses the escape of a lone surrogate.
        text = _without_surrogates(json.dumps(json.loads(text), ensure_ascii=False))
    return text


def _time(value: Value) -> Value:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _money(value: Value) -> Value:
    amount = Decimal(value)
    if not amount.is_finite():
        return None
    return max(-_MONEY_MAX, min(_MONEY_MAX, amount)).quantize(_MONEY_UNIT)


def _whole(value: Value) -> Value:
    return max(-_BIGINT_MAX, min(_BIGINT_MAX, int(value)))


def _real(value: Value) -> Value:
    number = float(value)
    return number if math.isfinite(number) else None


def _same(value: Value) -> Value:
    return value


_BY_TYPE: Final[Mapping[str, Callable[[Value], Value]]] = MappingProxyType(
    {
        "VARCHAR": _text,
        "JSON": _json,
        "TIMESTAMP WITH TIME ZONE": _time,
        "DECIMAL(18,9)": _money,
        "BIGINT": _whole,
        "DOUBLE": _real,
        "BOOLEAN": _same,
    }
)


def row_maker(
    columns: Mapping[str, str],
) -> Callable[[Mapping[str, Value]], tuple[Value, ...]]:
    """Rows in the order of the columns (name -> the database's type); what is left out is NULL."""
    makers = tuple((name, _BY_TYPE.get(kind, _same)) for name, kind in columns.items())

    def make(row: Mapping[str, Value]) -> tuple[Value, ...]:
        get = row.get
        return tuple(
            [None if (value := get(name)) is None else maker(value) for name, maker in makers]
        )

    return make
