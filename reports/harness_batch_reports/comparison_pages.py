"""A comparison of two runs as text for a terminal, as Markdown, and as JSON for scripts."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from harness_batch_reports import figures
from harness_batch_reports.comparison import Comparison, Gate, ItemComparison, Side
from harness_batch_reports.hostile import cell, inert, one_line
from harness_batch_reports.records import BatchReport, JsonObject
from harness_batch_reports.verdict import totals

PATHS = 5
"""Paths named for each item; more are counted."""


def as_text(comparison: Comparison, gate: Gate) -> str:
    """One block for each item that is not the same all over, then sums and the answer."""
    lines = [_heading(comparison, inert), ""]
    quiet = 0
    for item in comparison.items:
        facts = list(_facts(item, inert))
        if item.change == "same" and not facts:
            quiet += 1
            continue
        lines.append(f"{item.change:16}  {one_line(item.key, 200)}  {_outcomes(item)}".rstrip())
        lines += [f"{'':18}{fact}" for fact in facts]
    if quiet:
        lines.append(f"{'same':16}  {figures.count(quiet, 'item')} without any difference")
    lines += ["", *_sums(comparison), *_answer(gate, comparison, inert)]
    return "\n".join(lines) + "\n"


def as_markdown(comparison: Comparison, gate: Gate) -> str:
    """A heading with the answer, a table of items, sums."""
    refusals = list(gate.refusals(comparison))
    lines = [f"## {'Refused' if refusals else 'Compared'}: {_heading(comparison, cell)}", ""]
    lines += [f"- {cell(refusal, 1000)}" for refusal in refusals]
    lines += [
        "",
        "| change | item | outcome | cost | tokens | steps | denials | files |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(item) for item in comparison.items]
    lines += ["", *(f"- {line}" for line in _sums(comparison))]
    return "\n".join(lines) + "\n"


def as_json(comparison: Comparison, gate: Gate) -> JsonObject:
    """Everything, money as exact decimal text, null where it is not known."""
    refusals = list(gate.refusals(comparison))
    return {
        "schema": 1,
        "run": _run(comparison.run),
        "baseline": _run(comparison.baseline),
        "ok": not refusals,
        "refusals": refusals,
        "items": [
            {
                "item_key": item.key,
                "change": item.change.replace(" ", "_"),
                "run": _side(item.run),
                "baseline": _side(item.baseline),
                "files_added": list(item.files_added),
                "files_gone": list(item.files_gone),
            }
            for item in comparison.items
        ],
    }


def _heading(comparison: Comparison, shown: Callable[[str], str]) -> str:
    run, baseline = comparison.run.run.run_id, comparison.baseline.run.run_id
    return f"{shown(run)} against {shown(baseline)}"


def _outcomes(item: ItemComparison) -> str:
    before, now = _outcome(item.baseline), _outcome(item.run)
    return now if before == now else f"{before} -> {now}"


def _outcome(side: Side | None) -> str:
    if side is None:
        return "-"
    several = side.sums.sessions > 1
    passed = side.sums.statuses.get("passed", 0) + side.sums.statuses.get("cached", 0)
    told = f"{passed} of {side.sums.sessions} passed" if several else side.outcome
    return f"{told} ({one_line(side.reason, 80)})" if side.reason else told


def _facts(item: ItemComparison, shown: Callable[[str], str]) -> Iterator[str]:
    """What differs, one line each; nothing for an item of one side."""
    if item.run is None or item.baseline is None:
        return
    now, before = item.run, item.baseline
    numbers = (
        ("cost", _cost(before), _cost(now), _delta(before.cost_usd, now.cost_usd)),
        ("tokens", before.tokens, now.tokens, _delta(before.tokens, now.tokens)),
        ("steps", before.sums.steps, now.sums.steps, _delta(before.sums.steps, now.sums.steps)),
        ("denials", before.sums.denials, now.sums.denials, ""),
    )
    told = [f"{name} {old} -> {new}{delta}" for name, old, new, delta in numbers if old != new]
    if told:
        yield ", ".join(told)
    for sign, paths in (("+", item.files_added), ("-", item.files_gone)):
        if paths:
            more = f" and {len(paths) - PATHS} more" if len(paths) > PATHS else ""
            yield f"files {sign} {', '.join(shown(path) for path in paths[:PATHS])}{more}"


def _cost(side: Side) -> str:
    return figures.cost(
        side.sums.cost_usd, unpriced=side.sums.unpriced_calls, calls=side.sums.model_calls
    )


def _delta(before: Decimal | int | None, now: Decimal | int | None) -> str:
    if not before or now is None or before == now:
        return ""
    return f" ({100 * (Decimal(now) - before) / before:+.0f} %)"


def _row(item: ItemComparison) -> str:
    before, now = item.baseline, item.run

    def pair(tell: Callable[[Side], object]) -> str:
        old, new = ("-" if side is None else str(tell(side)) for side in (before, now))
        return old if old == new else f"{old} → {new}"

    files = [f"+ {cell(path)}" for path in item.files_added[:PATHS]]
    files += [f"- {cell(path)}" for path in item.files_gone[:PATHS]]
    more = len(item.files_added) + len(item.files_gone) - len(files)
    files += [f"{more} more"] if more else []
    cells = (
        item.change,
        cell(item.key),
        pair(lambda side: cell(_outcome(side))),
        pair(_cost),
        pair(lambda side: figures.tokens(side.tokens)),
        pair(lambda side: side.sums.steps),
        pair(lambda side: side.sums.denials),
        "<br>".join(files),
    )
    return f"| {' | '.join(cells)} |"


def _sums(comparison: Comparison) -> Iterator[str]:
    counted = [f"{n} {change}" for change, n in _counts(comparison.items)]
    yield f"{figures.count(len(comparison.items), 'item')}: {', '.join(counted) or 'none'}"
    costs = comparison.costs()
    if costs is None:
        yield "cost of the shared items: cannot be compared, some calls have no price"
    elif comparison.shared:
        now, before = costs
        told = f"{figures.money(before)} -> {figures.money(now)}{_delta(before, now)}"
        yield f"cost of the shared items: {told}"


def _counts(items: Iterable[ItemComparison]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for item in items:
        counts[item.change] = counts.get(item.change, 0) + 1
    return list(counts.items())


def _answer(gate: Gate, comparison: Comparison, shown: Callable[[str], str]) -> Iterator[str]:
    for refusal in gate.refusals(comparison):
        yield f"refused: {shown(refusal)}"


def _run(report: BatchReport) -> JsonObject:
    sums = totals(report.sessions)
    return {
        "run_id": report.run.run_id,
        "exit_code": report.run.exit_code,
        "sessions": sums.sessions,
        "cost_usd": figures.decimal_text(sums.cost_usd),
        "unpriced_calls": sums.unpriced_calls,
    }


def _side(side: Side | None) -> JsonObject | None:
    if side is None:
        return None
    return {
        "outcome": side.outcome,
        "reason": side.reason,
        "sessions": side.sums.sessions,
        "cost_usd": figures.decimal_text(side.cost_usd),
        "unpriced_calls": side.sums.unpriced_calls,
        "input_tokens": side.sums.input_tokens,
        "output_tokens": side.sums.output_tokens,
        "steps": side.sums.steps,
        "denials": side.sums.denials,
        "files": list(side.files),
    }
