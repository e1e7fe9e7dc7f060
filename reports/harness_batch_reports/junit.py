"""A finished run as JUnit XML, for every CI system that counts test cases.

One case per session, never per attempt, named by its item key; one more per check or expectation,
named `<item key> / <check>`. `failure`: the work is not good. `error`: provider, machine or this
program failed, or the run was interrupted. `skipped`: not admitted, or reused. `type` is a stable
code from `reasons.py`. A suite is a recipe (and a repository, when there are several), and names
are the same on every shard and night. A session's time is that of the agent, its checks' times
stand on their own cases, so that a suite's time is the sum of its cases.

Figures stand as properties and as text in `system-out`, since GitLab and Azure ignore properties.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from attrs import evolve, frozen

from harness_batch_reports import figures, junit_text
from harness_batch_reports.hostile import one_line, unattached
from harness_batch_reports.junit_dialects import DIALECTS, Dialect, short_name
from harness_batch_reports.junit_dom import (
    RERUN_ELEMENTS,
    Case,
    Outcome,
    Properties,
    Rerun,
    RerunElement,
    Suite,
    document,
)
from harness_batch_reports.places import Places
from harness_batch_reports.reasons import check_meaning, kind, meaning
from harness_batch_reports.records import Attempt, BatchReport, Check, ReportError, Session
from harness_batch_reports.verdict import repositories, totals

MESSAGE_LIMIT = 200
"""Characters of a `message`, which is one line."""


def render(report: BatchReport, dialect: str = "plain", project: Path | None = None) -> bytes:
    """The run as a JUnit document in UTF-8.

    `project` is the checkout that a CI system's paths are relative to; by default the folder that
    holds `.harness`, else the run's folder.

    Raises: ReportError for a dialect that is not one of `DIALECTS`.
    """
    if dialect not in DIALECTS:
        raise ReportError(f"no JUnit dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    groups: dict[tuple[str, str | None], list[Session]] = {}
    for session, repo in zip(report.sessions, repositories(report), strict=True):
        groups.setdefault((session.recipe, repo), []).append(session)
    ways, places = DIALECTS[dialect], Places.of(report, project)
    suites = []
    for (recipe, repo), sessions in groups.items():
        classname = _tidy(recipe if repo is None else f"{recipe}.{repo}", ways.classname_limit)
        scope = _Scope(report=report, ways=ways, places=places, classname=classname)
        suites.append(_suite(scope, recipe if repo is None else f"{recipe} / {repo}", sessions))
    return document("harness-batch", suites)


@frozen(kw_only=True)
class _Scope:
    """What every case of a suite shares."""

    report: BatchReport
    ways: Dialect
    places: Places
    classname: str

    def name(self, text: str) -> str:
        """A case's name as the dialect can hold it."""
        return _tidy(text, self.ways.limit_beside(self.classname))


def _suite(scope: _Scope, name: str, sessions: Sequence[Session]) -> Suite:
    names = _names(sessions)
    cases: list[Case] = []
    for session, case_name in zip(sessions, names, strict=True):
        cases.append(_session_case(scope, session, case_name))
        cases.extend(_check_cases(scope, session, case_name))
    starts = [session.started_at for session in sessions if session.started_at is not None]
    file = sessions[0].recipe_file
    return Suite(
        name=_tidy(name, scope.ways.name_limit),
        cases=tuple(_distinct(scope, cases)),
        timestamp=f"{min(starts):%Y-%m-%dT%H:%M:%S}" if starts else None,
        properties=tuple(_suite_properties(scope, sessions, names)),
        file=scope.places.in_project(file) if file else None,
    )


def _names(sessions: Sequence[Session]) -> list[str]:
    """The item keys, with the model where a merged run has one key for several models."""
    models: dict[str, set[str]] = {}
    for session in sessions:
        models.setdefault(session.item_key, set()).add(session.model)
    return [
        f"{session.item_key} [{session.model}]"
        if len(models[session.item_key]) > 1
        else session.item_key
        for session in sessions
    ]


def _distinct(scope: _Scope, cases: Sequence[Case]) -> Iterator[Case]:
    """A number behind a name that is there already: GitLab drops the second of two."""
    seen: dict[str, int] = {}
    for case in cases:
        number = seen.get(case.name, 0) + 1
        seen[case.name] = number
        yield evolve(case, name=scope.name(f"{case.name} #{number}")) if number > 1 else case


def _session_case(scope: _Scope, session: Session, name: str) -> Case:
    checking = sum(check.duration_s for check in session.checks)
    ways, report = scope.ways, scope.report
    return Case(
        name=scope.name(name),
        classname=scope.classname,
        seconds=max((session.wall_s or 0.0) - checking, 0.0),
        outcome=_outcome(session, report),
        reruns=_reruns(session) if ways.reruns else (),
        system_out=_system_out(scope, session),
        properties=_properties(report, session) if ways.case_properties else (),
        **ways.place(session, scope.places),
    )


def _outcome(session: Session, report: BatchReport) -> Outcome | None:
    how = kind(session)
    if how == "passed":
        return None
    why = meaning(session)
    return Outcome(
        kind=how,
        type=why.type,
        message=_message(one_line(why.text, MESSAGE_LIMIT), session.detail),
        detail=junit_text.detail(session, report),
    )


def _message(words: str, detail: str | None) -> str:
    said = one_line(detail or "", MESSAGE_LIMIT)
    both = f"{words}: {said}" if said and said.lower() != words.lower() else words
    return unattached(one_line(both, MESSAGE_LIMIT))


def _check_cases(scope: _Scope, session: Session, name: str) -> Iterator[Case]:
    for check in session.checks:
        yield Case(
            name=scope.name(f"{name} / {check.name}"),
            classname=scope.classname,
            seconds=max(check.duration_s, 0.0),
            outcome=None if check.passed else _check_outcome(check),
            **scope.ways.place(session, scope.places),
        )


def _check_outcome(check: Check) -> Outcome:
    why = check_meaning(check)
    said = check.reason or (f"exit code {check.exit_code}" if check.exit_code is not None else None)
    return Outcome(
        kind="failure",
        type=why.type,
        message=_message(one_line(why.text, MESSAGE_LIMIT), said),
        detail=junit_text.check_detail(check),
    )


def _reruns(session: Session) -> tuple[Rerun, ...]:
    """One for each earlier attempt that was not good. A recipe's own retry makes nothing flaky."""
    how = kind(session)
    if how == "skipped" or (how == "passed" and not session.flaky):
        return ()
    family: Literal["flaky", "rerun"] = "flaky" if how == "passed" else "rerun"
    tried = [_rerun(session, one, family) for one in session.earlier if one.status != "passed"]
    return tuple(sorted(tried, key=lambda rerun: RERUN_ELEMENTS.index(rerun.element)))


def _rerun(session: Session, attempt: Attempt, family: Literal["flaky", "rerun"]) -> Rerun:
    why = meaning(attempt)
    failure = kind(attempt) == "failure"
    element: RerunElement
    if family == "flaky":
        element = "flakyFailure" if failure else "flakyError"
    else:
        element = "rerunFailure" if failure else "rerunError"
    head = f"attempt {attempt.n} of {session.attempts}: {one_line(why.text, MESSAGE_LIMIT)}"
    return Rerun(
        element=element,
        type=why.type,
        message=_message(head, attempt.detail),
        stack_trace=junit_text.attempt_detail(session, attempt),
    )


def _system_out(scope: _Scope, session: Session) -> str:
    attached = scope.ways.attached(session, scope.places)
    text = junit_text.figures_text(session, scope.report)
    blocks = (attached, text) if scope.ways.attachments_first else (text, attached)
    return "\n".join(block for block in blocks if block)


def _properties(report: BatchReport, session: Session) -> Properties:
    return tuple((name, _value(value)) for name, value in junit_text.properties(session, report))


def _suite_properties(
    scope: _Scope, sessions: Sequence[Session], names: Sequence[str]
) -> Iterator[tuple[str, str]]:
    report = scope.report
    sums = totals(sessions)
    yield "run_id", _value(report.run.run_id)
    yield "version", _value(report.run.version)
    if report.run.shard_total:
        yield "shard", f"{report.run.shard_index}/{report.run.shard_total}"
    yield "sessions", str(sums.sessions)
    yield "cost_usd", figures.decimal_text(sums.cost_usd) or junit_text.no_cost(sums.unpriced_calls)
    yield "unpriced_calls", str(sums.unpriced_calls)
    yield "input_tokens", str(sums.input_tokens)
    yield "cache_read_tokens", str(sums.cache_read_tokens)
    yield "output_tokens", str(sums.output_tokens)
    if scope.ways.case_properties:
        return
    # Jenkins' schema knows no properties of a case: they stand here, under the case's name.
    for session, name in zip(sessions, names, strict=True):
        for key, value in _properties(report, session):
            yield f"{_tidy(name, 400)}: {key}", value


def _value(text: str) -> str:
    return unattached(one_line(text, 1_024))


def _tidy(text: str, limit: int) -> str:
    return short_name(unattached(one_line(text, 4_096)) or "-", limit)
