"""The lines of YAML that would have allowed what was denied; none for what nothing can allow."""

import json
import re
from collections.abc import Iterable

from harness_batch.permissions.judge import Ruling
from harness_batch.rules import PERMISSIONS

_NEVER = re.compile(r"(\S*/)?git\s+(.*\s)?(push|remote|config)\b")
"""Commands that are refused whatever the rules say."""


def allowing_lines(rulings: Iterable[Ruling]) -> tuple[str, ...]:
    """Lines for `permissions:` in a recipe, by permission, without repetition.

    What the agent's own restriction or the parent session denies is left out, since no rule lifts
    that. `"*"`, where only it would do, comes first: later lines win.
    """
    wanted: dict[str, dict[str, None]] = {}
    for ruling in rulings:
        if ruling.action == "deny" and ruling.by == "rules" and not _never(ruling):
            ask = ruling.ask
            pattern = "*" if ask.undecidable is not None else ask.pattern
            wanted.setdefault(ask.permission, {})[pattern] = None
    order = [name for name in PERMISSIONS if name in wanted]
    order += sorted(set(wanted) - set(order))
    return tuple(line for name in order for line in (f"{name}:", *_lines(wanted[name])))


def _never(ruling: Ruling) -> bool:
    ask = ruling.ask
    if ask.permission == "bash":
        return _NEVER.match(ask.pattern) is not None
    return ask.permission == "edit" and ".git" in ask.pattern.lower().split("/")


def _lines(patterns: Iterable[str]) -> Iterable[str]:
    for pattern in sorted(patterns, key=lambda each: (each != "*", each)):
        yield f"  {json.dumps(pattern)}: allow"
