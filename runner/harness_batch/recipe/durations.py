"""Durations as people write them, in seconds."""

import re

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_FORM = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|[smhdw]))+")
_PIECE = re.compile(r"([0-9.]+)(ms|[smhdw])")


def seconds(value: float | str) -> float:
    """A number of seconds, or `90s`, `10m`, `1h30m`, `7d`.

    Raises: ValueError for anything else, and for nothing at all (`0s`).
    """
    if not isinstance(value, str):
        return float(value)
    if not _FORM.fullmatch(value):
        raise ValueError(f"`{value[:40]}` is no duration; write seconds, or 90s, 10m, 1h30m, 7d")
    total = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(value))
    if total <= 0:
        raise ValueError(f"`{value}` is no time at all")
    return total
