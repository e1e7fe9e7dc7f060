"""What a person would do next, given how the run ended: at most a handful of steps."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from harness_batch_reports import figures
from harness_batch_reports.allow import allowing
from harness_batch_reports.reasons import meaning
from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import worst_first


@frozen
class Step:
    """Words of ours, and the command to type when there is one."""

    words: str
    command: str | None = None


def next_steps(report: BatchReport, near: Path | None = None) -> tuple[Step, ...]:
    """Look at the worst, allow what was denied, run again what errored, apply what is good.

    Paths below `near`, the folder that the commands are typed in, are shown relative to it.
    """
    worst = worst_first(report.sessions)
    bad = [s for s in worst if s.status not in {"passed", "cached", "skipped"}]
    good = [s for s in worst if s.status == "passed" and _applies(s)]
    where = _Where.of(report, near)
    return (*_look(bad, where), *_allow(report), *_again(report, worst), *_apply(good, where))


def _applies(session: Session) -> bool:
    patch = session.patch
    return patch is not None and patch.files > 0 and not patch.refused


@frozen
class _Where:
    """Options that make a command find a run, and change the right checkout."""

    near: Path | None
    run: Path | None
    """The run's folder when it is not one that is found by itself (`--out`)."""
    home: Path | None
    """The folder that holds `.harness/`."""

    @classmethod
    def of(cls, report: BatchReport, near: Path | None) -> "_Where":
        folder = report.folder
        if folder is None:
            return cls(near, None, None)
        if folder.parts[-3:-1] == (".harness", "runs"):
            return cls(near, None, folder.parents[2])
        return cls(near, folder, None)

    def session(self, command: str, session: Session) -> str:
        """`harness-batch COMMAND SESSION`, with `--run` where that is needed."""
        words = ["harness-batch", command, session.session_id]
        words += ["--run", _short(self.run, self.near)] if self.run else []
        return shlex.join(words)

    def checkout(self, session: Session) -> str:
        """`--repo PATH` when the session worked on another repository than the one at hand."""
        if session.repo is None or Path(session.repo) == self.home:
            return ""
        near = self.near or self.home  # a page is read at the top of the repository that ran it
        if near is None or (self.home is None and near.is_relative_to(session.repo)):
            return ""
        return f" --repo {shlex.quote(_short(Path(session.repo), near))}"


def _short(path: Path, near: Path | None) -> str:
    return str(path.relative_to(near)) if near and path.is_relative_to(near) else str(path)


def _look(bad: list[Session], where: _Where) -> Iterator[Step]:
    if bad:
        words = "read what went wrong" if len(bad) == 1 else "read the worst"
        yield Step(words, where.session("show", bad[0]))


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
        kind = "errored" if all(s.status == "errored" for s in again) else "unfinished"
        words = f"run {figures.count(len(again), f'{kind} session')} again"
        first = "mend the cause, then " if any(_stays(s) for s in again) else ""
        yield Step(first + words, _resuming(report))


def _stays(session: Session) -> bool:
    """Errored for a reason that is still there when nobody does anything."""
    return session.status == "errored" and meaning(session).type in _LASTING


_LASTING = frozenset({
    "infra.sandbox", "infra.setup", "policy.grant", "provider.auth", "provider.model",
    "provider.quota",
})  # fmt: skip


def _resuming(report: BatchReport) -> str:
    """The command of the run itself, resumed."""
    argv = report.run.argv
    same = shlex.join(argv) if argv[:1] == ("run",) else "run …"
    resume = "" if "--resume" in argv else f" --resume {shlex.quote(report.run.run_id)}"
    return f"harness-batch {same}{resume}"


def _apply(good: list[Session], where: _Where) -> Iterator[Step]:
    if not good:
        return
    command = where.session("apply", good[0]) + where.checkout(good[0])
    if len(good) == 1:
        yield Step("apply the patch that passed", command)
    else:
        yield Step(f"apply a patch ({len(good)} passed)", command)
