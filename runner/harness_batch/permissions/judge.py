"""The verdict of the rules on what a tool call asks for; pure, and nobody is ever asked.

The last rule of the stack that matches decides; no match denies, and so does `ask`. Above the
stack stand two ceilings that no rule lifts: where the agent's own last match denies, and where
the parent session's policy denies.

An allow that is too vague for an ask does not match it: one that is not exactly `*` for what
cannot be told in advance, one that does not name an option that executes or writes, one that
does not name the secret file that a default rule guards.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from attrs import frozen

from harness_batch.permissions.defaults import guards, names
from harness_batch.permissions.matcher import PATH_PERMISSIONS, covers, matches, path_matches
from harness_batch.permissions.url_rules import url_matches
from harness_batch.permissions.wording import denial
from harness_batch.rules import Ask, Rule

LISTED = 12
"""Patterns of a permission that a denial offers instead, the last of the stack."""


@frozen
class Ruling:
    """What was said to one ask. `rule` is None when no rule matched (which denies)."""

    ask: Ask
    action: Literal["allow", "deny"]
    rule: Rule | None
    by: Literal["rules", "agent", "parent"] = "rules"
    """Who decided: the stack, the agent's own restriction, or the parent session's policy."""


@frozen
class Allowed:
    """Every ask is allowed, each by a rule."""

    rulings: tuple[Ruling, ...]


@frozen
class Denied:
    """At least one ask is denied; the call must not run."""

    rulings: tuple[Ruling, ...]
    message: str
    """For the model: what was denied, by which rule of which source, and what it may do."""


Verdict: TypeAlias = Allowed | Denied


@frozen
class Policy:
    """Effective rules of one session. `stack` and `ceiling` in the order of their precedence."""

    stack: tuple[Rule, ...]
    ceiling: tuple[Rule, ...] = ()
    """The agent's own rules: they only ever deny here; their allows stand in the stack."""
    parent: "Policy | None" = None
    """A child session may do what both policies allow."""

    def judge(self, asks: Sequence[Ask]) -> Verdict:
        """Allowed only when every ask is; without any ask there is nothing to allow: denied."""
        real = any(not ask.passing for ask in asks)
        decide = self.refusal_of_passing if real else self.ruling
        each = (decide(ask) if ask.passing else self.ruling(ask) for ask in asks)
        rulings = tuple(ruling for ruling in each if ruling is not None)
        if rulings and all(ruling.action == "allow" for ruling in rulings):
            return Allowed(rulings)
        refused = [(r.ask, r.rule, r.by) for r in rulings if r.action == "deny"]
        return Denied(rulings, denial(refused, self._instead(refused)))

    def allows(self, ask: Ask) -> bool:
        """The verdict on one ask alone."""
        return self.ruling(ask).action == "allow"

    def ruling(self, ask: Ask) -> Ruling:
        """What decides one ask."""
        if self.parent is not None:
            above = self.parent.ruling(ask)
            if above.action == "deny":
                return Ruling(ask, "deny", above.rule, "parent")
        barred = _decider(self.ceiling, ask)
        if barred is not None and barred.action != "allow":
            return Ruling(ask, "deny", barred, "agent")
        rule = _decider(self.stack, ask)
        allowed = rule is not None and rule.action == "allow"
        return Ruling(ask, "allow" if allowed else "deny", rule)

    def can_allow(self, permission: str) -> bool:
        """Could any input at all be allowed? True when in doubt; a tool without is not shown."""
        if self.parent is not None and not self.parent.can_allow(permission):
            return False
        return bool(self._open(permission))

    def _barred(self, allow: Rule, permission: str) -> bool:
        """Does the ceiling deny everything that this rule allows?"""
        barred = False
        for rule in self.ceiling:
            if _is_for(rule, permission):
                if rule.action == "allow":
                    barred = False
                elif covers(rule.pattern, allow.pattern, permission):
                    barred = True
        return barred

    def refusal_of_passing(self, ask: Ask) -> Ruling | None:
        """The denial, by a rule that names it, of what no rule need allow; None without."""
        above = self.parent.refusal_of_passing(ask) if self.parent is not None else None
        if above is not None:
            return Ruling(ask, "deny", above.rule, "parent")
        barred = _decider(_named(self.ceiling), ask)
        if barred is not None and barred.action != "allow":
            return Ruling(ask, "deny", barred, "agent")
        rule = _decider(_named(self.stack), ask)
        if rule is not None and rule.action != "allow":
            return Ruling(ask, "deny", rule)
        return None

    def _open(self, permission: str) -> list[str]:
        """Patterns of allows that no later deny covers, nor the ceiling."""
        found: list[str] = []
        denies: list[str] = []
        for rule in reversed(self.stack):
            if not _is_for(rule, permission):
                continue
            if rule.action != "allow":
                denies.append(rule.pattern)
            elif not any(covers(deny, rule.pattern, permission) for deny in denies) and (
                not self._barred(rule, permission)
            ):
                found.append(rule.pattern)
        return found[::-1]

    def _instead(self, refused: Sequence[tuple[Ask, Rule | None, str]]) -> dict[str, list[str]]:
        """Patterns that are allowed, by permission, for those that were refused."""
        return {
            permission: [
                pattern
                for pattern in self._open(permission)[-LISTED:]
                if self.parent is None or self.parent.allows(Ask(permission, pattern))
            ]
            for permission in dict.fromkeys(ask.permission for ask, _, _ in refused)
        }


def _named(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Rules whose pattern begins with something literal."""
    return tuple(rule for rule in rules if rule.pattern[:1] not in ("*", "?", ""))


def _decider(rules: Sequence[Rule], ask: Ask) -> Rule | None:
    """The last rule that matches and is not too vague."""
    guard: Rule | None = None
    decider: Rule | None = None
    for rule in rules:
        if not _matches(rule, ask):
            continue
        if guards(rule):
            guard = rule
        if rule.action != "allow" or not _vague(rule, ask, guard):
            decider = rule
    return decider


def _is_for(rule: Rule, permission: str) -> bool:
    if rule.permission == permission:
        return True
    # A loop of equal calls is let through only by a rule that says so.
    return permission != "doom_loop" and matches(rule.permission, permission)


def _matches(rule: Rule, ask: Ask) -> bool:
    if not _is_for(rule, ask.permission):
        return False
    if ask.permission == "webfetch":
        return url_matches(rule.pattern, ask.pattern, widely=rule.action != "allow")
    if ask.permission not in PATH_PERMISSIONS:
        return matches(rule.pattern, ask.pattern)
    if path_matches(rule.pattern, ask.pattern):
        return True
    # On a file system that folds case a deny must not be dodged by `.ENV`; an allow is exact.
    return rule.action != "allow" and path_matches(rule.pattern.lower(), ask.pattern.lower())


def _vague(allow: Rule, ask: Ask, guard: Rule | None) -> bool:
    """Is this allow, whose pattern matches, too general for what is asked?"""
    if guard is not None and not names(allow.pattern, guard):
        return True
    if allow.pattern == "*":
        return False
    if ask.undecidable is not None:
        return True
    if allow.pattern == ask.pattern:
        return False
    words = allow.pattern.split()
    return not all(any(_names_option(word, option) for word in words) for option in ask.options)


def _names_option(word: str, option: str) -> bool:
    """`--output*` names `--output`; `-*` and `*` name nothing."""
    word = word.partition("=")[0]
    return bool(word.strip("-")[:1].strip("*?")) and matches(word, option)
