"""What reviews found: answers that are lists of findings, as records with harmless paths.

Which answers are, `findings.schema.json` says; recipes ask their models for it. A path is kept only
when it is a file below the repository's top: absolute ones, climbing ones and URIs are refused, as
a reader of the report would open them.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Literal

import jsonschema
from attrs import frozen
from referencing import Registry

from harness_batch_reports import figures
from harness_batch_reports.answers import answer_json
from harness_batch_reports.records import BatchReport, JsonObject, Session

Level = Literal["error", "warning", "note"]
LEVELS: Mapping[str, Level] = {
    "blocker": "error",
    "error": "error",
    "major": "warning",
    "warning": "warning",
    "minor": "note",
    "note": "note",
}
"""SARIF's words for severities, the worst first."""
_ORDER = ("error", "warning", "note")
NO_RULE = "finding"
"""The rule of findings that name none."""
_PATH_LIMIT = 1_024
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@frozen(kw_only=True)
class Finding:
    """One thing that a review objects to. Its texts are the model's."""

    session_id: str
    item_key: str
    severity: str
    """As it was said, e.g. `blocker`."""
    level: Level
    rule: str
    path: str | None
    """Relative to the repository's top, `/` between; None: none was given, or it was refused."""
    refused: str | None
    """The path that was refused."""
    line: int | None
    end_line: int | None
    code: str
    message: str
    suggestion: str

    @property
    def where(self) -> str:
        """`src/cli.py:12`; empty when it is not known."""
        if self.path is None:
            return ""
        return self.path if self.line is None else f"{self.path}:{self.line}"


def findings(session: Session) -> tuple[Finding, ...] | None:
    """The findings of a session, worst first; None when it was no review."""
    answer = answer_json(session.answer)
    if answer is None or not _validator().is_valid(answer):
        return None
    told = answer["findings"] if isinstance(answer, dict) else answer
    found = (_finding(session, one) for one in told if isinstance(one, dict))
    return tuple(sorted(dict.fromkeys(found), key=_badness))


def every_finding(report: BatchReport) -> tuple[Finding, ...]:
    """Of all reviews of a run, worst first."""
    found = (one for session in report.sessions for one in findings(session) or ())
    return tuple(sorted(found, key=_badness))


def findings_told(found: Sequence[Finding]) -> str:
    """`3 findings: 1 blocker, 2 minor`; empty when there is none."""
    if not found:
        return ""
    counts = Counter(one.severity for one in found)
    said = ", ".join(f"{number} {severity}" for severity, number in counts.items())
    return f"{figures.count(len(found), 'finding')}: {said}"


def findings_schema() -> JsonObject:
    """The JSON Schema (2020-12) of answers that are findings."""
    text = files("harness_batch_reports").joinpath("findings.schema.json").read_text("utf-8")
    schema: JsonObject = json.loads(text)
    return schema


def clean_path(path: str, repo: str | None = None) -> str | None:
    """The path relative to the repository's top, or None when it is none.

    An absolute path counts when it lies in `repo`, the checkout that the session came from.
    """
    path = path.strip().replace("\\", "/")
    if len(path) > _PATH_LIMIT or _ODD.search(path):
        return None
    if repo and path.startswith(f"{repo.rstrip('/')}/"):
        path = path.removeprefix(f"{repo.rstrip('/')}/")
    if path.startswith("/") or _SCHEME.match(path):
        return None
    parts = list(_parts(path))
    if not parts or ".." in parts or parts[0].startswith("~"):
        return None
    return str(PurePosixPath(*parts))


def _parts(path: str) -> Iterator[str]:
    """Without `.` and empty ones, and with each inner `name/..` taken back."""
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in {"", "."}:
            kept.append(part)
    return iter(kept)


def _finding(session: Session, told: JsonObject) -> Finding:
    given = told.get("path") or ""
    path = clean_path(given, session.repo)
    line = told.get("line") if path is not None else None
    end_line = told.get("end_line")
    return Finding(
        session_id=session.session_id,
        item_key=session.item_key,
        severity=told["severity"],
        level=LEVELS[told["severity"]],
        rule=told.get("rule") or NO_RULE,
        path=path,
        refused=given if given and path is None else None,
        line=line,
        end_line=end_line if line is not None and end_line and end_line > line else None,
        code=told.get("code") or "",
        message=told["message"],
        suggestion=told.get("suggestion") or "",
    )


def _badness(finding: Finding) -> tuple[int, str, int, str, str]:
    place = finding.path or "\uffff"
    return _ORDER.index(finding.level), place, finding.line or 0, finding.rule, finding.message


@cache
def _validator() -> jsonschema.Draft202012Validator:
    # An empty registry: a `$ref` can never make it fetch something.
    return jsonschema.Draft202012Validator(findings_schema(), registry=Registry())
