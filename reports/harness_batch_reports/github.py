"""GitHub's workflow commands: annotations, output values, and a fence around foreign output.

GitHub obeys `::name::` lines of a log. Ours are escaped as its runner undoes it; what an agent or
its tools print stands between `stop_commands` and its end, under a token nobody can guess.
"""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from harness_batch_reports import figures
from harness_batch_reports.findings import Finding, every_finding
from harness_batch_reports.hostile import one_line
from harness_batch_reports.places import Places
from harness_batch_reports.reasons import kind, meaning
from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import worst_first

ANNOTATIONS = 10
"""GitHub shows ten of a kind and step."""
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = _DATA | {":": "%3A", ",": "%2C"}


def annotations(report: BatchReport, project: Path | None = None) -> str:
    """Lines to print, worst first, at most ten: sessions that are not good, then findings.

    A session's stands at its recipe, relative to `project` (see `junit.render`), a finding's at
    its own line.
    """
    places = Places.of(report, project)
    bad = [s for s in worst_first(report.sessions) if kind(s) in {"failure", "error"}]
    every = [_Told.session(one, places) for one in bad]
    every += [_Told.finding(one) for one in every_finding(report)]
    shown = every if len(every) <= ANNOTATIONS else every[: ANNOTATIONS - 1]
    lines = [told.line() for told in shown]
    if rest := every[len(shown) :]:
        lines.append(_Told(_worst(rest), {"title": "harness-batch"}, _more(rest)).line())
    return "".join(f"{line}\n" for line in lines)


@frozen
class _Told:
    """One annotation: `level` is error, warning or notice."""

    level: str
    properties: Mapping[str, str]
    text: str
    of_session: bool = False

    @classmethod
    def session(cls, session: Session, places: Places) -> "_Told":
        why = meaning(session)
        detail = one_line(session.detail or "", 300)
        text = one_line(why.text, 200) + (f": {detail}" if detail else "")
        properties = {"title": one_line(session.item_key, 200)}
        if session.recipe_file:
            properties |= {"file": places.in_project(session.recipe_file), "line": "1"}
        return cls("error", properties, text, of_session=True)

    @classmethod
    def finding(cls, finding: Finding) -> "_Told":
        properties = {"title": one_line(f"{finding.item_key}: {finding.rule}", 200)}
        if finding.path is not None:
            properties["file"] = finding.path
        if finding.line is not None:
            properties["line"] = str(finding.line)
        if finding.end_line is not None:
            properties["endLine"] = str(finding.end_line)
        return cls(_LEVELS[finding.level], properties, one_line(finding.message, 1_000))

    def line(self) -> str:
        """`::level name=value,...::text`, escaped as GitHub undoes it."""
        said = ",".join(f"{k}={_escaped(v, _PROPERTY)}" for k, v in self.properties.items())
        return f"::{self.level} {said}::{_escaped(self.text, _DATA)}"


_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def _worst(told: Sequence[_Told]) -> str:
    return min((one.level for one in told), key=list(_LEVELS.values()).index)


def _more(rest: Sequence[_Told]) -> str:
    sessions = sum(one.of_session for one in rest)
    found = len(rest) - sessions
    words = [f"{figures.count(sessions, 'more session')} did not pass"] if sessions else []
    words += [figures.count(found, "more finding")] if found else []
    return ", ".join(words)


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return text.translate({ord(character): escape for character, escape in table.items()})


def stopped(text: str, token: str | None = None) -> str:
    """The text between `stop-commands` and its end: no line in it is obeyed.

    `token` is random when it is not given.
    """
    token = token or secrets.token_hex(16)
    body = text if text.endswith("\n") else f"{text}\n"
    return f"::stop-commands::{token}\n{body}::{token}::\n"
