"""What the rules refused, and the recipe lines that would have allowed exactly that.

A line allows what was asked and as little more as can be: an asterisk in what was asked would be a
wildcard in a rule, so it is written as `?`, which stands for one character.
"""

import json
import re
from collections.abc import Iterable

from attrs import frozen

from harness_batch_reports.hostile import json_inert
from harness_batch_reports.records import BatchReport, Denial

LINES_LIMIT = 30
"""Patterns suggested for one recipe."""
PATTERN_LIMIT = 500
"""A longer pattern is not suggested: nobody reviews it."""
_PLAIN_KEY = re.compile(r"[a-z][a-z_]*")


@frozen
class Allowing:
    """YAML for one recipe. `left_out` patterns were too many or too long to suggest."""

    recipe: str
    file: str | None
    yaml: str
    left_out: int


def allowing(report: BatchReport) -> tuple[Allowing, ...]:
    """The lines for each recipe that met a denial, in the order of the denials.

    What an agent itself denies (`source` is `agent:NAME`) no recipe can allow: no line for it.
    """
    owners = {session.session_id: session for session in report.sessions}
    asked: dict[str, list[Denial]] = {}
    files: dict[str, str | None] = {}
    for denial in report.denials:
        owner = owners.get(denial.session_id)
        if owner is None or (denial.source or "").startswith("agent:"):
            continue
        asked.setdefault(owner.recipe, []).append(denial)
        files[owner.recipe] = owner.recipe_file
    return tuple(_allowing(recipe, files[recipe], found) for recipe, found in asked.items())


def by_agent(denials: Iterable[Denial]) -> tuple[str, ...]:
    """The agents whose own rules denied something, e.g. `plan`."""
    named = (denial.source or "" for denial in denials)
    return tuple(dict.fromkeys(s.removeprefix("agent:") for s in named if s.startswith("agent:")))


def _allowing(recipe: str, file: str | None, denials: Iterable[Denial]) -> Allowing:
    every = dict.fromkeys((denial.permission, denial.pattern) for denial in denials)
    short = [pair for pair in every if len(pair[1]) <= PATTERN_LIMIT]
    shown = short[:LINES_LIMIT]
    groups: dict[str, list[str]] = {}
    for permission, pattern in shown:
        groups.setdefault(permission, []).append(pattern)
    lines = ["permissions:"]
    for permission, patterns in groups.items():
        key = permission if _PLAIN_KEY.fullmatch(permission) else _quoted(permission)
        lines.append(f"  {key}:")
        lines.extend(f"    {_quoted(pattern)}: allow" for pattern in patterns)
    yaml = "\n".join(lines) if shown else ""
    return Allowing(recipe, file, yaml, len(every) - len(shown))


def _quoted(pattern: str) -> str:
    """A double-quoted YAML string, which is JSON; odd characters stand as escapes."""
    literal = pattern.replace("*", "?")
    return json_inert(json.dumps(literal, ensure_ascii=not literal.isprintable()))
