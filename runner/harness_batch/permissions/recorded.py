"""Decisions that were recorded, judged again: what they needed, and what other rules would say.

A record holds what was asked, not how well it could be told in advance; for shell commands that is
found out again from the pattern, which is the command. Pure.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from attrs import frozen

from harness_batch.permissions.defaults import DEFAULT_RULES
from harness_batch.permissions.judge import Policy, Ruling
from harness_batch.permissions.shell import ShellPlace, asks_of
from harness_batch.rules import Ask, Rule

_NOWHERE = ShellPlace(root=Path("/workspace"), cwd=Path("/workspace"), tmp=Path("/tmp"))  # noqa: S108 - a name, nothing is opened


@frozen(kw_only=True)
class Decision:
    """What the rules said to one ask."""

    permission: str
    pattern: str
    action: Literal["allow", "deny"]
    rule: str | None
    source: str


@frozen(kw_only=True)
class DecidedCall:
    """One tool call with all that was asked for it; a child's belongs to the session above it."""

    tool_call_id: str
    run_id: str
    session_id: str
    """Of the plan."""
    recipe: str
    item_key: str
    tool: str | None
    decisions: tuple[Decision, ...]

    @property
    def was_allowed(self) -> bool:
        """Every ask was."""
        return all(decision.action == "allow" for decision in self.decisions)

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What was asked, as the judge wants it."""
        return tuple(ask_again(d.permission, d.pattern) for d in self.decisions)


@lru_cache(4096)
def ask_again(permission: str, pattern: str) -> Ask:
    """The ask of a recorded pattern, with what the judge must know of a shell command."""
    if permission == "bash":
        for ask in asks_of(pattern, _NOWHERE):
            if ask.permission == "bash" and ask.pattern == pattern:
                return Ask(permission, pattern, ask.undecidable, ask.options)
    return Ask(permission, pattern)


@frozen(kw_only=True)
class Suggestion:
    """The least that a recipe must allow beyond the defaults for what was used."""

    recipe: str
    rules: tuple[Rule, ...]
    because: dict[str, str]
    """Permission -> why nothing less than `*` will do."""
    not_by_rules: tuple[Ask, ...]
    """Asks that these rules still do not allow."""


def suggestions(calls: Iterable[DecidedCall]) -> tuple[Suggestion, ...]:
    """For each recipe, from the calls that were allowed."""
    used: dict[str, dict[Ask, None]] = {}
    for call in calls:
        if call.was_allowed:
            used.setdefault(call.recipe, {}).update(dict.fromkeys(call.asks))
    return tuple(_suggestion(recipe, asks) for recipe, asks in sorted(used.items()))


def _suggestion(recipe: str, asks: Iterable[Ask]) -> Suggestion:
    defaults = Policy(DEFAULT_RULES)
    needed = [ask for ask in asks if not defaults.allows(ask)]
    because = {
        ask.permission: f"`{ask.pattern}`: {ask.undecidable}" for ask in needed if ask.undecidable
    }
    pairs = sorted(
        {(a.permission, "*" if a.permission in because else _literal(a.pattern)) for a in needed}
    )
    rules = tuple(Rule(permission, pattern, "allow", "suggested") for permission, pattern in pairs)
    policy = Policy((*DEFAULT_RULES, *rules))
    left = tuple(ask for ask in needed if not policy.allows(ask))
    return Suggestion(recipe=recipe, rules=rules, because=because, not_by_rules=left)


def _literal(pattern: str) -> str:
    """A pattern for this text; its asterisks would be wildcards, `?` stands for one character."""
    return pattern.replace("*", "?")


@frozen(kw_only=True)
class Changed:
    """Calls that other rules judge otherwise, by what decides it."""

    recipe: str
    now: Literal["allow", "deny"]
    ask: Ask
    rule: Rule | None
    """The deciding rule among the other rules; None when none matches."""
    by: str
    before: str
    """The deciding rule then, and its source."""
    calls: int


@frozen(kw_only=True)
class Retried:
    """What became of all calls."""

    calls: int
    unchanged: int
    not_judged: int
    """Of recipes that the other rules are not for."""
    changed: tuple[Changed, ...]


@frozen(kw_only=True)
class Policies:
    """Other rules: by item key, else one for all."""

    by_item: dict[str, Policy]
    other: Policy | None
    """None when there are no other rules at all."""
    recipe: str | None = None
    """The only recipe that these rules are for; None: for all."""

    def of(self, call: DecidedCall) -> Policy | None:
        """What judges the call; None when these rules are for other recipes."""
        if self.recipe not in (None, call.recipe):
            return None
        return self.by_item.get(call.item_key, self.other)


def retried(calls: Sequence[DecidedCall], policies: Policies) -> Retried:
    """The recorded calls under other rules."""
    found: dict[tuple[str, Ask, str], Changed] = {}
    same = missing = 0
    for call in calls:
        policy = policies.of(call)
        if policy is None:
            missing += 1
            continue
        rulings = policy.judge(call.asks).rulings
        allowed = bool(rulings) and all(ruling.action == "allow" for ruling in rulings)
        if allowed == call.was_allowed:
            same += 1
            continue
        for decision, ruling in zip(call.decisions, rulings, strict=True):
            if ruling.action != decision.action:
                _count(found, call, decision, ruling)
    return Retried(
        calls=len(calls),
        unchanged=same,
        not_judged=missing,
        changed=tuple(sorted(found.values(), key=lambda c: (c.now != "deny", -c.calls))),
    )


def _count(
    found: dict[tuple[str, Ask, str], Changed],
    call: DecidedCall,
    decision: Decision,
    ruling: Ruling,
) -> None:
    key = (call.recipe, ruling.ask, ruling.action)
    earlier = found[key].calls if key in found else 0
    found[key] = Changed(
        recipe=call.recipe,
        now=ruling.action,
        ask=ruling.ask,
        rule=ruling.rule,
        by=ruling.by,
        before=f"{decision.rule or 'no rule'} ({decision.source})",
        calls=earlier + 1,
    )
