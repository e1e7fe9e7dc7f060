"""The overview's charts: each with the figures it draws as a table, and a sentence that tells it.

The page's script draws them with the charting library; who cannot see them reads the table.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from attrs import frozen

from harness_batch_reports import figures
from harness_batch_reports.hostile import one_line
from harness_batch_reports.records import BatchReport, JsonObject
from harness_batch_reports.usage import ModelUsage, Spend, Usage
from harness_batch_reports.verdict import totals

POINTS = 200
"""Points of the line of costs."""
_BARS = 12
"""Models with a bar of their own; the rest is one bar."""


@frozen(kw_only=True)
class Chart:
    """One chart. `rows` is its table, `drawn` what the script draws."""

    id: str
    title: str
    sentence: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    drawn: JsonObject


def charts(report: BatchReport, usage: Usage) -> tuple[Chart, ...]:
    """Those that have something to show."""
    models = _fewer(usage.models)
    return (
        *_outcomes(report),
        *_over_time(usage.spend),
        *_by_model(models),
        *_cache(models),
    )


def _outcomes(report: BatchReport) -> Iterator[Chart]:
    statuses = totals(report.sessions).statuses
    if not statuses:
        return
    said = ", ".join(f"{count} {status}" for status, count in statuses.items())
    yield Chart(
        id="outcome",
        title="Outcome",
        sentence=f"Sessions by outcome: {said}.",
        head=("Outcome", "Sessions", "Share"),
        rows=tuple(
            (status, f"{count:,}", figures.share(count, len(report.sessions)))
            for status, count in statuses.items()
        ),
        drawn={"kind": "outcome", "labels": list(statuses), "values": list(statuses.values())},
    )


def _over_time(spend: Sequence[Spend]) -> Iterator[Chart]:
    total = Decimal(0)
    start = spend[0].ended_at if spend else None
    points: list[tuple[float, Decimal]] = []
    for one in spend:
        total += one.cost_usd
        points.append(((one.ended_at - start).total_seconds() if start else 0.0, total))
    if not total or len(points) < 2:
        return
    every = max(len(points) // POINTS, 1)
    kept = [*points[: len(points) - 1 : every], points[-1]]
    took = figures.duration(points[-1][0])
    yield Chart(
        id="spend",
        title="Cost over time",
        sentence=f"The cost grew to {figures.money(total)} within {took}.",
        head=("After", "Cost so far"),
        rows=tuple(
            (figures.duration(at), figures.money(usd)) for at, usd in kept[:: len(kept) // 12 or 1]
        ),
        drawn={
            "kind": "spend",
            "at": [at for at, _ in kept],
            "values": [float(usd) for _, usd in kept],
        },
    )


def _by_model(models: Sequence[ModelUsage]) -> Iterator[Chart]:
    priced = [model for model in models if model.cost_usd]
    if not priced:
        return
    dearest = priced[0]
    yield Chart(
        id="models",
        title="Cost by model",
        sentence=f"{one_line(dearest.model, 100)} cost the most: {_cost(dearest)}.",
        head=("Model", "Cost", "Requests"),
        rows=tuple((one_line(m.model, 100), _cost(m), f"{m.calls:,}") for m in models),
        drawn={
            "kind": "models",
            "labels": [one_line(model.model, 40) for model in priced],
            "values": [float(model.cost_usd or 0) for model in priced],
        },
    )


def _cache(models: Sequence[ModelUsage]) -> Iterator[Chart]:
    used = [model for model in models if model.input_tokens]
    if not used:
        return
    whole = sum(model.input_tokens for model in used)
    cached = sum(model.cache_read_tokens for model in used)
    yield Chart(
        id="cache",
        title="Tokens and cache",
        sentence=f"{figures.share(cached, whole)} of {figures.tokens(whole)} input tokens came "
        "from the cache.",
        head=("Model", "From cache", "Fresh", "Out", "Cache rate"),
        rows=tuple(
            (
                one_line(model.model, 100),
                figures.tokens(model.cache_read_tokens),
                figures.tokens(model.input_tokens - model.cache_read_tokens),
                figures.tokens(model.output_tokens),
                figures.share(model.cache_read_tokens, model.input_tokens),
            )
            for model in used
        ),
        drawn={
            "kind": "cache",
            "labels": [one_line(model.model, 40) for model in used],
            "cached": [model.cache_read_tokens for model in used],
            "fresh": [model.input_tokens - model.cache_read_tokens for model in used],
            "out": [model.output_tokens for model in used],
        },
    )


def _cost(model: ModelUsage) -> str:
    return "unpriced" if model.cost_usd is None else figures.money(model.cost_usd)


def _fewer(models: Sequence[ModelUsage]) -> tuple[ModelUsage, ...]:
    if len(models) <= _BARS:
        return tuple(models)
    rest = models[_BARS - 1 :]
    priced = [model.cost_usd for model in rest if model.cost_usd is not None]
    other = ModelUsage(
        model=f"{len(rest)} other models",
        calls=sum(model.calls for model in rest),
        failed=sum(model.failed for model in rest),
        input_tokens=sum(model.input_tokens for model in rest),
        cache_read_tokens=sum(model.cache_read_tokens for model in rest),
        output_tokens=sum(model.output_tokens for model in rest),
        cost_usd=sum(priced, Decimal(0)) if priced else None,
        p50_s=None,
        p95_s=None,
    )
    return (*models[: _BARS - 1], other)
