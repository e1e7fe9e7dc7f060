"""Runs as reports see them, read once from small databases, in a folder that is always the same."""

import json
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from attrs import evolve

import report_rows
import report_views
from harness_batch_reports.read import read_run, read_session
from harness_batch_reports.records import (
    BatchReport,
    Check,
    Denial,
    Notice,
    Session,
    SessionTranscript,
)

FOLDER = Path("/home/ci/app/.harness/runs/run_7")


def read(tables: report_views.Tables) -> BatchReport:
    """The tables as a report, as if its files lay in `FOLDER`."""
    with TemporaryDirectory() as folder:
        report = read_run(report_views.write(Path(folder) / "run.duckdb", tables))
    return evolve(
        report,
        folder=FOLDER,
        sessions=tuple(evolve(session, files=_files(session)) for session in report.sessions),
    )


def _files(session: Session) -> tuple[str, ...]:
    if session.attempt_n is None:
        return ()
    attempt = PurePosixPath("items", session.folder or "", f"attempt-{session.attempt_n}")
    names = ["answer.md"] if session.answer else []
    names += ["change.patch"] if session.patch else []
    return tuple(str(attempt / name) for name in [*names, "transcript.md"])


@cache
def nightly() -> BatchReport:
    """Every kind of ending."""
    return read(report_rows.nightly())


@cache
def passing() -> BatchReport:
    """One session that passed."""
    return read(report_rows.passing())


@cache
def review() -> BatchReport:
    """One review that answered with JSON and changed nothing."""
    found = {"severity": "major", "rule": "crash", "path": "src/cli.py", "line": 12,
             "message": "Fails without arguments."}  # fmt: skip
    answer = json.dumps({"verdict": "request_changes", "findings": [found]})
    one = report_rows.session("core", answer=answer, **report_rows.NO_PATCH)
    one |= {"item_key": "review-pr", "recipe": "review-pr", "matrix": {}, "folder": "review-pr"}
    return read({"report_run": [report_rows.run(exit_code=0)], "report_session": [one]})


def reviewing(text: str) -> BatchReport:
    """A review whose every finding says `text`, wherever it can."""
    found = {"severity": "major", "path": text, "line": 3, "code": text, "message": text or "m",
             "suggestion": text}  # fmt: skip
    answer = json.dumps({"verdict": text, "findings": [found, found | {"path": "src/cli.py"}]})
    return changed(review(), answer=answer)


@cache
def transcript() -> SessionTranscript:
    """All that was said in a session."""
    with TemporaryDirectory() as folder:
        path = report_views.write(Path(folder) / "run.duckdb", report_rows.talk())
        return read_session(path, "ses_core")


def changed(report: BatchReport, **changes: Any) -> BatchReport:
    """The report with the changes in each of its sessions."""
    return evolve(report, sessions=tuple(evolve(session, **changes) for session in report.sessions))


def hostile(text: str, name: str | None = None) -> BatchReport:
    """A run in which `text` stands wherever somebody else could have written.

    Item, recipe and check are called `name` when it is given.
    """
    report, called = nightly(), text if name is None else name
    return evolve(
        report,
        run=evolve(report.run, argv=("run", text), ci_url=text, trigger=text),
        sessions=tuple(_hostile_session(session, text, called) for session in report.sessions),
        denials=tuple(_hostile_denial(denial, text) for denial in report.denials),
        notices=(Notice(session_id=None, level="warning", text=text, ts=None),),
    )


def _hostile_session(session: Session, text: str, name: str) -> Session:
    patch = session.patch and evolve(session.patch, paths=(text, text), refused=text)
    checks = (
        Check(session_id=session.session_id, name=name, kind="check", passed=False, exit_code=1,
              duration_s=1.0, reason=text, output=text),
    )  # fmt: skip
    reason = session.reason and f"check:{name}"
    earlier = tuple(evolve(one, detail=text, reason=reason) for one in session.earlier)
    return evolve(
        session, earlier=earlier, item_key=name, recipe=name, recipe_file=text, detail=text,
        reason=reason, answer=text, model=text, agent=text, ref=text, patch=patch, checks=checks,
    )  # fmt: skip


def _hostile_denial(denial: Denial, text: str) -> Denial:
    return evolve(denial, pattern=text, tool=text, rule=text, source=text, item_key=text)
