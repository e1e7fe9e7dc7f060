"""A run beside its baseline, item by item: outcome, cost, tokens, steps, denials, files.

An item is matched by its key. One that only one side has is named, not counted as a change; a cost
that nobody knows is never taken for 0.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Literal, TypeAlias

from attrs import frozen

from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import Totals, outcome, totals

Change: TypeAlias = Literal[
    "new failure", "still failing", "fixed", "same", "only in run", "only in baseline", "not run"
]

GOOD = frozenset({"passed", "cached"})
BAD = frozenset({"failed", "errored", "cancelled", "unfinished"})


@frozen(kw_only=True)
class Side:
    """What one run says of one item: of its one session, or of all when it has several."""

    outcome: str
    """Status of the session; the worst of several."""
    reason: str | None
    """Of that session."""
    sums: Totals
    files: tuple[str, ...]
    """Paths of the patches, sorted."""

    @property
    def cost_usd(self) -> Decimal | None:
        """What it cost; None when some call has no price."""
        if self.sums.unpriced_calls:
            return None
        return self.sums.cost_usd if self.sums.cost_usd is not None else Decimal(0)

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.sums.input_tokens + self.sums.output_tokens


@frozen(kw_only=True)
class ItemComparison:
    """One item; at least one side is there."""

    key: str
    run: Side | None
    baseline: Side | None

    @property
    def change(self) -> Change:
        """What became of it."""
        if self.run is None:
            return "only in baseline"
        bad = self.run.outcome in BAD
        if self.baseline is None:
            return "new failure" if bad else "only in run"
        if bad:
            return "still failing" if self.baseline.outcome in BAD else "new failure"
        if self.run.outcome == "skipped":
            return "same" if self.baseline.outcome == "skipped" else "not run"
        return "fixed" if self.baseline.outcome in BAD else "same"

    @property
    def files_added(self) -> tuple[str, ...]:
        """Paths that only the run changes."""
        return _without(self.run, self.baseline)

    @property
    def files_gone(self) -> tuple[str, ...]:
        """Paths that only the baseline changes."""
        return _without(self.baseline, self.run)


@frozen(kw_only=True)
class Comparison:
    """Two runs. `items`: worst change first."""

    run: BatchReport
    baseline: BatchReport
    items: tuple[ItemComparison, ...]

    def of(self, change: Change) -> tuple[ItemComparison, ...]:
        """The items that changed so."""
        return tuple(item for item in self.items if item.change == change)

    @property
    def shared(self) -> tuple[ItemComparison, ...]:
        """Items of both sides."""
        return tuple(item for item in self.items if item.run and item.baseline)

    def costs(self) -> tuple[Decimal, Decimal] | None:
        """Cost of the shared items, run and baseline; None when a call of either has no price."""
        sums = [Decimal(0), Decimal(0)]
        for item in self.shared:
            for i, side in enumerate((item.run, item.baseline)):
                if side is None or side.cost_usd is None:
                    return None
                sums[i] += side.cost_usd
        return sums[0], sums[1]


_ORDER: tuple[Change, ...] = (
    "new failure", "still failing", "not run", "only in baseline", "only in run", "fixed", "same",
)  # fmt: skip


def compare(run: BatchReport, baseline: BatchReport) -> Comparison:
    """The two side by side."""
    now, before = _by_item(run.sessions), _by_item(baseline.sessions)
    keys = dict.fromkeys((*now, *before))
    items = (
        ItemComparison(
            key=key,
            run=_side(now[key]) if key in now else None,
            baseline=_side(before[key]) if key in before else None,
        )
        for key in keys
    )
    ordered = sorted(items, key=lambda item: (_ORDER.index(item.change), item.key))
    return Comparison(run=run, baseline=baseline, items=tuple(ordered))


@frozen(kw_only=True)
class Gate:
    """What must hold; None and False hold always."""

    max_cost_increase: Decimal | None = None
    """As a share: 0.2 is 20 %."""
    no_new_failures: bool = False

    def refusals(self, comparison: Comparison) -> Iterator[str]:
        """Why the answer is no, one line each; nothing when it is yes."""
        failures = comparison.of("new failure")
        if self.no_new_failures and failures:
            more = f" and {len(failures) - 5} more" if len(failures) > 5 else ""
            yield f"new failures: {', '.join(item.key for item in failures[:5])}{more}"
        if self.max_cost_increase is not None:
            yield from _cost_refusal(self.max_cost_increase, comparison)


def _cost_refusal(allowed: Decimal, comparison: Comparison) -> Iterator[str]:
    costs = comparison.costs()
    if costs is None:
        yield "the costs cannot be compared: some calls have no price"
        return
    now, before = costs
    if now > before * (1 + allowed):
        share = f"by {100 * (now - before) / before:.1f} %" if before else "from nothing"
        told = f"{before.normalize():f} to {now.normalize():f} USD"
        yield f"cost rose {share} (allowed: {float(100 * allowed):.4g} %): {told}"


def _by_item(sessions: Iterable[Session]) -> dict[str, list[Session]]:
    found: dict[str, list[Session]] = {}
    for session in sessions:
        found.setdefault(session.item_key, []).append(session)
    return found


_WORST = ("failed", "errored", "unfinished", "cancelled", "skipped", "cached", "passed")


def _side(sessions: list[Session]) -> Side:
    worst = min(sessions, key=lambda session: _WORST.index(outcome(session)))
    paths = {path for one in sessions if one.patch for path in one.patch.paths}
    return Side(
        outcome=outcome(worst),
        reason=worst.reason,
        sums=totals(sessions),
        files=tuple(sorted(paths)),
    )


def _without(one: Side | None, other: Side | None) -> tuple[str, ...]:
    there = set(other.files) if other else set()
    return tuple(path for path in one.files if path not in there) if one else ()
