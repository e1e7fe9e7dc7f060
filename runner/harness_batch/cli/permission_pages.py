"""What `permissions` prints: decisions, suggestions, other rules' decisions, explanations."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness_batch.cli.forms import written
from harness_batch_reports import figures
from harness_batch_reports.hostile import inert, json_inert, one_line

if TYPE_CHECKING:
    from harness_batch.app.explaining import Explained
    from harness_batch.permissions.judge import Ruling
    from harness_batch.permissions.recorded import Changed, DecidedCall, Retried, Suggestion

_PLAIN_KEY = re.compile(r"[a-z][a-z_]*")
_WIDTH = 160


def decided(calls: Iterable["DecidedCall"]) -> str:
    """A table: which rule decided, how often, for how many patterns, and one of them."""
    rows = [
        (row["action"], row["permission"], row["rule"] or "(no rule)", row["source"],
         row["times"], len(row["patterns"]), one_line(row["patterns"][0]["pattern"], 60))
        for row in _decided(calls)
    ]  # fmt: skip
    if not rows:
        return "no decision was recorded"
    columns = ("action", "permission", "rule", "source", "times", "patterns", "for example")
    return "".join(written("table", columns, rows)).rstrip("\n")


def decided_json(calls: Iterable["DecidedCall"]) -> str:
    """The same with every pattern."""
    return _json({"rules": _decided(calls)})


def _decided(calls: Iterable["DecidedCall"]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str, str | None, str], Counter[str]] = {}
    for call in calls:
        for d in call.decisions:
            found.setdefault((d.action, d.permission, d.rule, d.source), Counter())[d.pattern] += 1
    ordered = sorted(found.items(), key=lambda one: (one[0][0] != "deny", -one[1].total()))
    return [
        {
            "action": action,
            "permission": permission,
            "rule": rule,
            "source": source,
            "times": patterns.total(),
            "patterns": [{"pattern": p, "times": n} for p, n in patterns.most_common()],
        }
        for (action, permission, rule, source), patterns in ordered
    ]


def suggested(found: Sequence["Suggestion"]) -> str:
    """YAML for each recipe."""
    return "\n\n".join("\n".join(_yaml(one)) for one in found) or "no call was allowed"


def suggested_json(found: Iterable["Suggestion"]) -> str:
    """Rules by recipe and permission."""
    recipes = [
        {
            "recipe": one.recipe,
            "permissions": {
                name: {rule.pattern: "allow" for rule in one.rules if rule.permission == name}
                for name in dict.fromkeys(rule.permission for rule in one.rules)
            },
            "because": one.because,
            "not_by_rules": [[ask.permission, ask.pattern] for ask in one.not_by_rules],
        }
        for one in found
    ]
    return _json({"recipes": recipes})


def _yaml(one: "Suggestion") -> Iterator[str]:
    yield f"# {one_line(one.recipe, 200)}"
    if not one.rules:
        yield "# the default rules allow all that was used"
        return
    yield "permissions:"
    for name in dict.fromkeys(rule.permission for rule in one.rules):
        key = name if _PLAIN_KEY.fullmatch(name) else _quoted(name)
        yield f"  {key}:"
        if name in one.because:
            yield f"    # {one_line(one.because[name], _WIDTH)}"
        for rule in one.rules:
            if rule.permission == name:
                yield f"    {_quoted(rule.pattern)}: allow"
    for ask in one.not_by_rules:
        yield f"# no rule of this kind allows {ask.permission} {one_line(ask.pattern, _WIDTH)}"


def retried(result: "Retried", recipe: str) -> str:
    """What would change, denials first."""
    lines = [_changed(change) for change in result.changed]
    told = f"{figures.count(result.calls, 'call')}: {result.unchanged:,} decided as before"
    differ = result.calls - result.unchanged - result.not_judged
    told += f", {differ:,} otherwise"
    if result.not_judged:
        told += f", {result.not_judged:,} of other recipes than {recipe}"
    return "\n".join([*lines, told])


def _changed(change: "Changed") -> str:
    verb = "would be denied " if change.now == "deny" else "would be allowed"
    asked = f"{change.ask.permission} {one_line(change.ask.pattern, _WIDTH)}"
    times = figures.count(change.calls, "call")
    return (
        f"{verb}  {asked}  ({times} of {one_line(change.recipe, 80)})\n"
        f"                  now: {_rule(change.rule)}\n"
        f"                  was: {one_line(change.before, _WIDTH)}"
    )


def retried_json(result: "Retried") -> str:
    """The same for scripts."""
    return _json(
        {
            "calls": result.calls,
            "unchanged": result.unchanged,
            "not_judged": result.not_judged,
            "changed": [
                {
                    "recipe": change.recipe,
                    "permission": change.ask.permission,
                    "pattern": change.ask.pattern,
                    "now": change.now,
                    "rule": str(change.rule) if change.rule else None,
                    "source": change.rule.source if change.rule else "none",
                    "by": change.by,
                    "before": change.before,
                    "calls": change.calls,
                }
                for change in result.changed
            ],
        }
    )


def explained(answers: Sequence["Explained"]) -> str:
    """For each item (or once, when all say the same) what decides each ask."""
    texts = {answer.item_key: "\n".join(_explained(answer)) for answer in answers}
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "the plan is empty: no item to explain")
    return "\n\n".join(f"{one_line(key, 200)}\n{text}" for key, text in texts.items())


def _explained(answer: "Explained") -> Iterator[str]:
    yield "allowed" if answer.allowed else "denied"
    if answer.refusal is not None:
        yield f"  no rule can allow it: {inert(answer.refusal)}"
    for ruling in answer.rulings:
        asked = f"{ruling.ask.permission} {one_line(ruling.ask.pattern, _WIDTH)}"
        yield f"  {ruling.action:5}  {asked}"
        yield f"         {_rule(ruling.rule)}{_by(ruling)}"
        if ruling.ask.undecidable:
            yield f"         {ruling.ask.undecidable}: only a rule for exactly `*` allows that"


def _by(ruling: "Ruling") -> str:
    return " (the agent's own restriction; no other rule lifts it)" if ruling.by == "agent" else ""


def _rule(rule: Any) -> str:  # noqa: ANN401 - Rule or None
    from harness_batch.app.explaining import place_of

    if rule is None:
        return "no rule matches, which denies"
    return f"{inert(place_of(rule))}: {one_line(str(rule), _WIDTH)}"


def explained_json(answers: Iterable["Explained"]) -> str:
    """For each item: the verdict, and for each ask the rule and its place."""
    from harness_batch.app.explaining import place_of

    return _json(
        {
            "items": [
                {
                    "item_key": answer.item_key,
                    "allowed": answer.allowed,
                    "refusal": answer.refusal,
                    "decisions": [
                        {
                            "permission": ruling.ask.permission,
                            "pattern": ruling.ask.pattern,
                            "action": ruling.action,
                            "rule": str(ruling.rule) if ruling.rule else None,
                            "source": ruling.rule.source if ruling.rule else "none",
                            "place": place_of(ruling.rule) if ruling.rule else None,
                            "by": ruling.by,
                            "undecidable": ruling.ask.undecidable,
                            "options": list(ruling.ask.options),
                        }
                        for ruling in answer.rulings
                    ],
                }
                for answer in answers
            ]
        }
    )


def _quoted(pattern: str) -> str:
    """A double-quoted YAML string, which is JSON; odd characters stand as escapes."""
    return json_inert(json.dumps(pattern, ensure_ascii=not pattern.isprintable()))


def _json(value: object) -> str:
    return json_inert(json.dumps(value, indent=2, ensure_ascii=True))
