"""What became of the run: counts, totals and the order in which people want to read sessions."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import PurePath

from attrs import frozen

from harness_batch_reports import figures
from harness_batch_reports.records import BatchReport, Session

_WORST_FIRST = ("failed", "errored", "unfinished", "cancelled", "skipped", "passed", "cached")

EXIT_WORDS = {
    0: "every session passed",
    1: "at least one session failed",
    2: "nothing ran",
    3: "at least one session errored",
    4: "stopped by a limit of the run",
    130: "interrupted",
    143: "terminated",
}
"""What the exit codes mean, in a few words."""


@frozen(kw_only=True)
class Totals:
    """Sums over sessions. `cost_usd` is None when no call had a price."""

    sessions: int
    statuses: dict[str, int]
    """Sessions by status, `unfinished` for those that never ended; worst first, no zeros."""
    flaky: int
    checks: int
    checks_failed: int
    denials: int
    model_calls: int
    unpriced_calls: int
    tool_calls: int
    steps: int
    input_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    files_changed: int

    @property
    def cost(self) -> str:
        """The cost for people."""
        if self.model_calls == 0:
            return "no model call"
        return figures.cost(self.cost_usd, unpriced=self.unpriced_calls, calls=self.model_calls)


def outcome(session: Session) -> str:
    """The status as a word: `unfinished` when there is none."""
    return session.status or "unfinished"


def totals(sessions: Iterable[Session]) -> Totals:
    """The sums of these sessions."""
    every = tuple(sessions)
    found = Counter(outcome(session) for session in every)
    priced = [session.cost_usd for session in every if session.cost_usd is not None]
    checks = [check for session in every for check in session.checks]
    return Totals(
        sessions=len(every),
        statuses={status: found[status] for status in _WORST_FIRST if found[status]},
        flaky=sum(session.flaky for session in every),
        checks=len(checks),
        checks_failed=sum(not check.passed for check in checks),
        denials=sum(session.denials for session in every),
        model_calls=sum(session.model_calls for session in every),
        unpriced_calls=sum(session.unpriced_calls for session in every),
        tool_calls=sum(session.tool_calls for session in every),
        steps=sum(session.steps for session in every),
        input_tokens=sum(session.input_tokens for session in every),
        cache_read_tokens=sum(session.cache_read_tokens for session in every),
        output_tokens=sum(session.output_tokens for session in every),
        cost_usd=sum(priced, Decimal(0)) if priced else None,
        files_changed=sum(session.patch.files for session in every if session.patch),
    )


def tokens_used(sums: Totals) -> str:
    """`12.3k tokens in (40 % from cache), 950 out`; a dash when none was used."""
    if not sums.input_tokens and not sums.output_tokens:
        return "-"
    cached = figures.share(sums.cache_read_tokens, sums.input_tokens)
    tokens = f"{figures.tokens(sums.input_tokens)} tokens in ({cached} from cache)"
    return f"{tokens}, {figures.tokens(sums.output_tokens)} out"


def checks_told(sums: Totals) -> str:
    """`all 12 checks passed`, `1 of 12 checks failed`; empty when there was none."""
    if not sums.checks:
        return ""
    if not sums.checks_failed:
        return "the check passed" if sums.checks == 1 else f"all {sums.checks:,} checks passed"
    return f"{sums.checks_failed:,} of {figures.count(sums.checks, 'check')} failed"


def session_cost(session: Session) -> str:
    """The session's cost for people."""
    return figures.cost(
        session.cost_usd, unpriced=session.unpriced_calls, calls=session.model_calls
    )


def worst_first(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """By failure, then by cost, dearest first, then by item."""
    return tuple(sorted(sessions, key=_badness))


def _badness(session: Session) -> tuple[int, int, Decimal, str]:
    status = outcome(session)
    rank = _WORST_FIRST.index(status) if status in _WORST_FIRST else 0
    usd = session.cost_usd if session.cost_usd is not None else Decimal(0)
    return rank, 0 if session.flaky else 1, -usd, session.item_key


def headline(report: BatchReport) -> str:
    """The verdict in one line: `1 of 3 sessions failed, 1 errored`."""
    sums = totals(report.sessions)
    if not sums.sessions:
        return "no session: nothing was planned for this run"
    bad = [(n, status) for status, n in sums.statuses.items() if status not in _GOOD]
    if not bad:
        return _all_good(sums)
    (first, status), *others = bad
    words = f"{first} of {figures.count(sums.sessions, 'session')} {status}"
    return words + "".join(f", {n} {status}" for n, status in others)


_GOOD = frozenset({"passed", "cached"})


def _all_good(sums: Totals) -> str:
    number = "the session" if sums.sessions == 1 else f"all {sums.sessions:,} sessions"
    reused = sums.statuses.get("cached", 0)
    notes = [f"{reused} reused from earlier runs"] if reused else []
    notes += [f"{sums.flaky} only after a failed try"] if sums.flaky else []
    return f"{number} passed" + (f" ({', '.join(notes)})" if notes else "")


def repositories(report: BatchReport) -> tuple[str | None, ...]:
    """For each session the repository's name when the run has several, else None.

    Several are there when the item key names one (`...@name`), which it does on every shard alike.
    """
    several = len({session.repo for session in report.sessions}) > 1
    return tuple(_repository(session, several=several) for session in report.sessions)


def _repository(session: Session, *, several: bool) -> str | None:
    if session.repo is None:
        return None
    name = PurePath(session.repo).name
    return name if several or session.item_key.endswith(f"@{name}") else None


def elapsed(report: BatchReport) -> float | None:
    """Seconds from the run's start to its end; None when it was cut off."""
    if report.run.started_at is None or report.run.finished_at is None:
        return None
    return (report.run.finished_at - report.run.started_at).total_seconds()
