"""What the HTML page's template fills in: the overview and the tables, as plain text.

Nothing here is markup. The template escapes each text, and `html.py` cleans it before that.
"""

from collections.abc import Iterator, Mapping

from attrs import frozen

from harness_batch_reports import figures
from harness_batch_reports.allow import Allowing, allowing, by_agent
from harness_batch_reports.findings import Finding, every_finding
from harness_batch_reports.hostile import one_line
from harness_batch_reports.html_charts import Chart, charts
from harness_batch_reports.html_session import why
from harness_batch_reports.markdown_overview import change
from harness_batch_reports.next_steps import Step, next_steps
from harness_batch_reports.records import BatchReport, Denial, Notice, Session
from harness_batch_reports.usage import ModelUsage, ToolUsage, Usage
from harness_batch_reports.verdict import (
    EXIT_WORDS,
    Totals,
    checks_told,
    elapsed,
    headline,
    outcome,
    session_cost,
    totals,
    worst_first,
)

_DENIALS = 500
_NOTICES = 100
_FINDINGS = 2_000
_TONES = {"error": "failed", "warning": "errored", "note": "skipped"}


@frozen(kw_only=True)
class Tile:
    """One figure of the overview. `tone` is a status, or empty."""

    name: str
    value: str
    note: str = ""
    tone: str = ""


@frozen(kw_only=True)
class Line:
    """A session in the table; the numbers beside the texts are what a column is sorted by."""

    number: int
    session: Session
    status: str
    why: str
    change: str
    cost: str
    tokens: str
    time: str
    order: Mapping[str, float]


@frozen(kw_only=True)
class Found:
    """What a review found. `tone` is a status whose colour it takes."""

    session_id: str
    item_key: str
    severity: str
    tone: str
    where: str
    rule: str
    message: str
    suggestion: str


@frozen(kw_only=True)
class Page:
    """All that stands on the page outside of its sessions."""

    title: str
    tone: str
    """Status of the worst session."""
    ending: str
    """What the exit code says."""
    tiles: tuple[Tile, ...]
    steps: tuple[Step, ...]
    charts: tuple[Chart, ...]
    notices: tuple[Notice, ...]
    more_notices: int
    lines: tuple[Line, ...]
    statuses: Mapping[str, int]
    several_models: bool
    findings: tuple[Found, ...]
    denials: tuple[Denial, ...]
    more_denials: int
    allowing: tuple[Allowing, ...]
    agents: tuple[str, ...]
    models: tuple[ModelUsage, ...]
    tools: tuple[ToolUsage, ...]
    facts: tuple[tuple[str, str], ...]
    unpriced: str


def page(report: BatchReport, usage: Usage) -> Page:
    """The page of a run; its lines stand in the order of `worst_first`."""
    worst = worst_first(report.sessions)
    words = headline(report)
    sums = totals(report.sessions)
    told = [notice for notice in report.notices if notice.level in {"warning", "error"}]
    return Page(
        title=words[0].upper() + words[1:],
        tone=outcome(worst[0]) if worst else "skipped",
        ending=_ending(report.run.exit_code),
        tiles=tuple(_tiles(report, sums)),
        steps=next_steps(report),
        charts=charts(report, usage),
        notices=tuple(told[:_NOTICES]),
        more_notices=len(told[_NOTICES:]),
        lines=tuple(_line(number, session) for number, session in enumerate(worst)),
        statuses=sums.statuses,
        several_models=len({session.model for session in worst}) > 1,
        findings=tuple(map(_found, every_finding(report)[:_FINDINGS])),
        denials=report.denials[:_DENIALS],
        more_denials=len(report.denials[_DENIALS:]),
        allowing=tuple(found for found in allowing(report) if found.yaml),
        agents=by_agent(report.denials),
        models=usage.models,
        tools=usage.tools,
        facts=tuple(_facts(report)),
        unpriced=_unpriced(sums),
    )


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "The run was cut off before its end"
    words = EXIT_WORDS.get(exit_code)
    return f"Exit code {exit_code}" + (f": {words}" if words else "")


def _tiles(report: BatchReport, sums: Totals) -> Iterator[Tile]:
    good = sums.statuses.get("passed", 0) + sums.statuses.get("cached", 0)
    tone = "passed" if good == sums.sessions else "failed"
    flaky = f"{sums.flaky} only after a failed try" if sums.flaky else ""
    yield Tile(
        name="Sessions passed", value=f"{good:,} of {sums.sessions:,}", note=flaky, tone=tone
    )
    if sums.checks:
        bad = "failed" if sums.checks_failed else "passed"
        yield Tile(
            name="Checks",
            value=f"{sums.checks - sums.checks_failed:,} of {sums.checks:,}",
            note=checks_told(sums),
            tone=bad,
        )
    budget = report.run.budget_usd
    yield Tile(
        name="Cost",
        value=figures.money(sums.cost_usd) if sums.cost_usd else sums.cost,
        note=f"of {figures.money(budget)} allowed" if budget is not None else "",
    )
    cached = figures.share(sums.cache_read_tokens, sums.input_tokens)
    yield Tile(
        name="Tokens in", value=figures.tokens(sums.input_tokens), note=f"{cached} from cache"
    )
    yield Tile(name="Tokens out", value=figures.tokens(sums.output_tokens))
    requests = figures.count(sums.model_calls, "request")
    yield Tile(name="Time", value=figures.duration(elapsed(report)), note=requests)
    if sums.denials:
        yield Tile(name="Denied calls", value=f"{sums.denials:,}", tone="errored")


def _line(number: int, session: Session) -> Line:
    patch = session.patch
    return Line(
        number=number,
        session=session,
        status=outcome(session),
        why=why(session),
        change=change(session),
        cost=session_cost(session),
        tokens=figures.tokens(session.input_tokens + session.output_tokens),
        time=figures.duration(session.wall_s),
        order={
            "change": patch.added + patch.removed if patch else 0,
            "cost": float(session.cost_usd or 0),
            "tokens": session.input_tokens + session.output_tokens,
            "time": session.wall_s or 0,
        },
    )


def _found(finding: Finding) -> Found:
    return Found(
        session_id=finding.session_id,
        item_key=finding.item_key,
        severity=finding.severity,
        tone=_TONES[finding.level],
        where=finding.where or "-",
        rule=finding.rule,
        message=finding.message,
        suggestion=finding.suggestion,
    )


def _unpriced(sums: Totals) -> str:
    if not sums.unpriced_calls:
        return ""
    known = figures.money(sums.cost_usd) if sums.cost_usd else None
    calls = figures.count(sums.unpriced_calls, "model call")
    return f"{calls} of {sums.model_calls:,} without a known price; " + (
        f"the true cost is above {known}." if known else "the cost is not known."
    )


def _facts(report: BatchReport) -> Iterator[tuple[str, str]]:
    run = report.run
    yield "Run", run.run_id
    if run.started_at is not None:
        yield "Started", f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC"
    if run.finished_at is not None:
        yield "Finished", f"{run.finished_at:%Y-%m-%d %H:%M:%S} UTC"
    yield "Program", f"harness-batch {run.version}"
    yield "Command", one_line(" ".join(("harness-batch", *run.argv)), 1_000)
    if run.shard_total:
        yield "Shard", f"{run.shard_index}/{run.shard_total}"
    for name, value in (("CI", run.ci_provider), ("Trigger", run.trigger), ("CI job", run.ci_url)):
        if value:
            yield name, one_line(value, 500)
    if run.lock_digest:
        yield "Lock", run.lock_digest
    for name, value in sorted(run.sandbox.items()):
        yield f"Sandbox: {one_line(name, 40)}", one_line(str(value), 200)
