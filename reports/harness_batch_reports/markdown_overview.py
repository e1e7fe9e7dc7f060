"""The top of the Markdown page: verdict, figures, next steps, the table, the footer."""

import re
from collections.abc import Callable, Iterator

from harness_batch_reports import figures
from harness_batch_reports.findings import every_finding, findings_told
from harness_batch_reports.hostile import cell, code, one_line
from harness_batch_reports.next_steps import next_steps
from harness_batch_reports.reasons import kind, meaning
from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import (
    EXIT_WORDS,
    checks_told,
    elapsed,
    headline,
    outcome,
    session_cost,
    tokens_used,
    totals,
    worst_first,
)

MARKS = {
    "passed": "✅",
    "cached": "♻️",
    "skipped": "⏭️",
    "failed": "❌",
    "errored": "⚠️",
    "cancelled": "🛑",
}
"""A sign for each status; anything else is `❔`."""
_WEB = re.compile(r"https?://[A-Za-z0-9._~:/?=&%+\-]{3,500}")


def mark(session: Session) -> str:
    """The sign of the session's status."""
    return MARKS.get(outcome(session), "❔")


def why(session: Session, limit: int = 160, span: Callable[[str, int], str] = code) -> str:
    """The reason in words of ours; what others wrote stands in a `span`: `code` or `cell`."""
    if kind(session) == "passed":
        return "passed after a failed try" if session.flaky else ""
    reason = meaning(session)
    words = reason.words
    if reason.subject is not None:
        words = words.replace("{}", span(reason.subject, 80))
    said = one_line(session.detail or "", limit)
    return f"{words}: {span(said, limit)}" if said else words


def verdict(report: BatchReport) -> Iterator[str]:
    """Headline, figures, what has no price, what to do next."""
    sums = totals(report.sessions)
    worst = worst_first(report.sessions)
    sign = mark(worst[0]) if worst else "❔"
    yield f"## {sign} harness-batch: {headline(report)}"
    cost = "-" if sums.cost == "-" else f"**{sums.cost}**"
    facts = [cost, tokens_used(sums), figures.duration(elapsed(report))]
    facts += [checks_told(sums), findings_told(every_finding(report))]
    facts.append(_exit(report.run.exit_code))
    yield " · ".join(fact for fact in facts if fact not in {"-", ""})
    if sums.unpriced_calls:
        known = figures.money(sums.cost_usd) if sums.cost_usd else None
        yield (
            f"**Unpriced:** {figures.count(sums.unpriced_calls, 'model call')} of "
            f"{sums.model_calls:,} {'has' if sums.unpriced_calls == 1 else 'have'} no known price"
            + (f"; the true cost is above {known}." if known else "; the cost is not known.")
        )
    steps = [
        f"- {step.words}" + (f": {code(step.command, 300)}" if step.command else "")
        for step in next_steps(report)
    ]
    if steps:
        yield "**Next**\n\n" + "\n".join(steps)


def _exit(exit_code: int | None) -> str:
    if exit_code is None:
        return "the run was cut off before its end"
    words = EXIT_WORDS.get(exit_code)
    return f"exit code {exit_code}" + (f" ({words})" if words else "")


def table(report: BatchReport, most: int) -> Iterator[str]:
    """One row a session, worst first, at most `most`; the rest is counted."""
    worst = worst_first(report.sessions)
    if not worst:
        return
    several = len({session.model for session in worst}) > 1
    model = " Model |" if several else ""
    head = f"| Outcome | Item |{model} Why | Change | Cost | Tokens | Steps | Time |"
    line = "|---|---|" + ("---|" if several else "") + "---|---|---:|---:|---:|---:|"
    rows = [_row(session, several=several) for session in worst[:most]]
    yield "\n".join([head, line, *rows])
    if rest := worst[most:]:
        counts = ", ".join(f"{n} {status}" for status, n in totals(rest).statuses.items())
        yield f"… and {figures.count(len(rest), 'more session')}: {counts}."


def _row(session: Session, *, several: bool) -> str:
    cells = [
        f"{mark(session)} {outcome(session)}",
        cell(session.item_key, 120),
        *([cell(session.model, 60)] if several else []),
        why(session, span=cell),
        change(session),
        session_cost(session),
        figures.tokens(session.input_tokens + session.output_tokens),
        str(session.steps),
        figures.duration(session.wall_s),
    ]
    return "| " + " | ".join(cells) + " |"


def change(session: Session) -> str:
    """`2 files +40 -12`, and what is wrong with the patch."""
    patch = session.patch
    if patch is None or patch.files == 0:
        return ""
    text = f"{figures.count(patch.files, 'file')} +{patch.added} -{patch.removed}"
    if patch.refused:
        return f"{text}, refused"
    return text if patch.applies is not False else f"{text}, does not apply"


def footer(report: BatchReport) -> str:
    """Where the page comes from."""
    run = report.run
    facts = [f"run {code(run.run_id, 80)}", f"harness-batch {code(run.version, 40)}"]
    if run.shard_total:
        facts.append(f"shard {run.shard_index}/{run.shard_total}")
    if run.started_at is not None:
        facts.append(f"{run.started_at:%Y-%m-%d %H:%M} UTC")
    if run.ci_url and _WEB.fullmatch(run.ci_url):
        facts.append(f"[CI job]({run.ci_url})")
    return "---\n\n" + " · ".join(facts)
