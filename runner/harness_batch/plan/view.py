"""The plan for people and for programs: what `plan` and `plan --json` print."""

import re
from collections.abc import Iterator
from itertools import groupby

from attrs import asdict

from harness_batch.errors import Fault
from harness_batch.limits import Limits
from harness_batch.messages import JsonObject
from harness_batch.plan.item import Item, Plan
from harness_batch.recipe.record import Recipe, RetryRule
from harness_batch.rules import Rule

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plan_as_json(plan: Plan) -> JsonObject:
    """`{items: [...], warnings: [...]}`; money in US dollars, times in seconds."""
    return {
        "items": [_item_json(item) for item in plan.items],
        "warnings": [_fault_json(warning) for warning in plan.warnings],
    }


def _item_json(item: Item) -> JsonObject:
    return {
        "key": item.key,
        "folder": item.folder,
        "digest": item.digest,
        "recipe": item.recipe.name,
        "recipe_file": str(item.recipe.file),
        "model": str(item.models[0]),
        "fallback_models": [str(ref) for ref in item.models[1:]],
        "agent": item.agent.name,
        "params": item.params,
        "matrix": item.matrix,
        "repo": item.repo,
        "ref": item.ref,
        "base_sha": item.base_sha,
        "limits": _limits_json(item.limits),
        "permissions": [_rule_json(rule) for rule in item.rules],
        "on_denial": item.recipe.on_denial,
        "sandbox": _sandbox_json(item.recipe),
        "workspace": {
            "mode": item.recipe.workspace.mode,
            "path": item.recipe.workspace.path,
            "setup": list(item.recipe.workspace.setup),
        },
        "checks": [{"name": check.name, "run": check.run} for check in item.recipe.checks],
        "retry": _retry_json(item.recipe.retry),
        "forecast": _forecast_json(item.limits),
        "refusal": item.refusal,
    }


def _limits_json(limits: Limits) -> JsonObject:
    cost = None if limits.cost_usd is None else float(limits.cost_usd)
    return {**asdict(limits), "cost_usd": cost}


def _rule_json(rule: Rule) -> JsonObject:
    return {
        "permission": rule.permission,
        "pattern": rule.pattern,
        "action": rule.action,
        "source": rule.source,
    }


def _sandbox_json(recipe: Recipe) -> JsonObject:
    wish = recipe.sandbox
    network = wish.network if isinstance(wish.network, str) else list(wish.network)
    return {
        "network": network,
        "write": list(wish.write),
        "need": list(wish.need),
        "external": wish.external,
    }


def _retry_json(rule: RetryRule | None) -> JsonObject | None:
    return None if rule is None else {**asdict(rule), "checks": list(rule.checks)}


def _forecast_json(limits: Limits) -> JsonObject:
    bound = None if limits.cost_usd is None else float(limits.cost_usd)
    return {"basis": "limit", "p50_usd": None, "p95_usd": None, "limit_usd": bound}


def _fault_json(fault: Fault) -> JsonObject:
    return {
        "file": str(fault.file),
        "line": fault.line,
        "column": fault.column,
        "message": fault.message,
        "severity": fault.severity,
    }


def plan_as_text(plan: Plan) -> str:
    """One screen: items by what they have in common, each stack of rules once."""
    lines = [f"{len(plan.items)} session{'' if len(plan.items) == 1 else 's'}"]
    for _, group in groupby(plan.items, key=_common):
        alike = tuple(group)
        lines += ["", *_group(alike)]
    if plan.warnings:
        lines += ["", *(shown(str(warning)) for warning in plan.warnings)]
    return "\n".join(lines) + "\n"


def _common(item: Item) -> tuple[object, ...]:
    recipe = item.recipe
    return (
        recipe.file,
        item.repo,
        item.base_sha,
        item.agent.name,
        item.models,
        item.rules,
        item.limits,
        recipe.sandbox,
        recipe.workspace,
        recipe.checks,
        recipe.retry,
        item.refusal,
    )


def _group(items: tuple[Item, ...]) -> Iterator[str]:
    first = items[0]
    recipe = first.recipe
    yield shown(f"{recipe.name}  ({recipe.file})")
    for item in items:
        yield shown(f"  {item.digest[:12]}  {item.key}")
    fallbacks = "".join(f", then {ref}" for ref in first.models[1:])
    yield shown(f"  model       {first.models[0]}{fallbacks}")
    yield shown(f"  agent       {first.agent.name}")
    base = first.base_sha[:12] if first.base_sha else "no commit yet"
    yield shown(f"  repository  {first.repo} at {first.ref} ({base}), {recipe.workspace.mode}")
    yield f"  limits      {_limits_text(first.limits)}"
    yield shown(f"  sandbox     {_sandbox_text(recipe)}")
    checks = ", ".join(check.name for check in recipe.checks)
    yield shown(f"  checks      {checks or 'none'}")
    if recipe.retry is not None:
        yield shown(f"  retry       {_retry_text(recipe.retry)}")
    cost = first.limits.cost_usd
    yield f"  forecast    {'no cost limit' if cost is None else f'at most {cost} USD each'}"
    if first.refusal:
        yield shown(f"  refused     {first.refusal}")
    yield "  permissions (the last match wins; no match is denied)"
    yield from _rules_text(first.rules)


def _rules_text(rules: tuple[Rule, ...]) -> Iterator[str]:
    """One line a rule; a run of default denies (files that hold secrets) is one line together."""
    for (secret, permission), run in groupby(rules, key=_guard):
        alike = tuple(run)
        if secret and len(alike) > 1:
            some = ", ".join(rule.pattern for rule in alike[:3])
            told = f"{len(alike)} patterns of secrets, {some} ..."
            yield f"    deny   {permission}: {told}   [default]"
            continue
        for rule in alike:
            yield shown(f"    {rule.action:5}  {rule.permission}: {rule.pattern}   [{rule.source}]")


def _guard(rule: Rule) -> tuple[bool, str]:
    return rule.source == "default" and rule.action == "deny", rule.permission


def _limits_text(limits: Limits) -> str:
    declared = ((name, value) for name, value in asdict(limits).items() if value is not None)
    return ", ".join(
        f"{name} {f'{value:g}' if isinstance(value, float) else value}" for name, value in declared
    )


def _retry_text(rule: RetryRule) -> str:
    how = "goes on with what failed" if rule.feedback else "begins the conversation again"
    where = "from the base" if rule.reset else "in the workspace as it is"
    return f"at most {rule.max_retries} times; {how}, {where}"


def _sandbox_text(recipe: Recipe) -> str:
    wish = recipe.sandbox
    network = wish.network if isinstance(wish.network, str) else ", ".join(wish.network)
    parts = [f"network {network}"]
    if wish.write:
        parts.append(f"also writable: {', '.join(wish.write)}")
    if wish.need:
        parts.append(f"needs {', '.join(wish.need)}")
    return "; ".join(parts)


def shown(text: str) -> str:
    """Control characters and direction marks as escapes: values may come from anywhere."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
