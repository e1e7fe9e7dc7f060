"""What a person would do next, given how the run ended: at most a handful of steps."""

import shlex
from collections.abc import Iterator

from attrs import frozen

from harness_batch_reports import figures
from harness_batch_reports.allow import allowing
from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import worst_first


@frozen
class Step:
    """Words of ours, and the command to type when there is one."""

    words: str
    command: str | None = None


def next_steps(report: BatchReport) -> tuple[Step, ...]:
    """Look at the worst, allow what was denied, run again what errored, apply what is good."""
    worst = worst_first(report.sessions)
    bad = [s for s in worst if s.status not in {"passed", "cached", "skipped"}]
    good = [s for s in worst if s.status == "passed" and _applies(s)]
    return (*_look(bad), *_allow(report), *_again(report, worst), *_apply(good))


def _applies(session: Session) -> bool:
    patch = session.patch
    return patch is not None and patch.files > 0 and not patch.refused


def _look(bad: list[Session]) -> Iterator[Step]:
    if bad:
        words = "read what went wrong" if len(bad) == 1 else "read the worst"
        yield Step(words, f"harness-batch show {shlex.quote(bad[0].session_id)}")


def _allow(report: BatchReport) -> Iterator[Step]:
    if not any(found.yaml for found in allowing(report)):
        return
    times = sum(denial.times for denial in report.denials)
    words = figures.count(times, "denied request")
    yield Step(f"{words}: decide whether to allow {'it' if times == 1 else 'them'}, see Denied")


def _again(report: BatchReport, worst: tuple[Session, ...]) -> Iterator[Step]:
    """What was not decided on merit can be run again; the rest is kept."""
    again = [s for s in worst if s.status in {"errored", "cancelled", "skipped", None}]
    if again:
        words = f"run {figures.count(len(again), 'unfinished session')} again"
        yield Step(words, _resuming(report))


def _resuming(report: BatchReport) -> str:
    """The command of the run itself, resumed."""
    argv = report.run.argv
    same = shlex.join(argv) if argv[:1] == ("run",) else "run …"
    resume = "" if "--resume" in argv else f" --resume {shlex.quote(report.run.run_id)}"
    return f"harness-batch {same}{resume}"


def _apply(good: list[Session]) -> Iterator[Step]:
    if not good:
        return
    command = f"harness-batch apply {shlex.quote(good[0].session_id)}"
    if len(good) == 1:
        yield Step("apply the patch that passed", command)
    else:
        yield Step(f"apply a patch ({len(good)} passed)", command)
