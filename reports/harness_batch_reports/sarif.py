"""What reviews found as SARIF 2.1.0, for code scanning.

One `run` for each recipe (and repository, when there are several), `automationDetails.id` is its
name: a later upload replaces the earlier one of the same recipe. Fingerprints are made of rule,
path and the line's text (else the message), never of line numbers, so that a finding stays itself
while code above it moves. Specification: OASIS SARIF 2.1.0, sections in the comments.
"""

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from urllib.parse import quote

from attrs import frozen

from harness_batch_reports.findings import Finding, findings
from harness_batch_reports.hostile import excerpt, json_inert, one_line
from harness_batch_reports.records import BatchReport, JsonObject, Session
from harness_batch_reports.verdict import repositories

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "harnessBatchFinding/v1"
RESULTS = 5_000
"""Of one run; readers take no more."""
_LINK = re.compile(r"\](?=\()")
_PLACEHOLDER = re.compile(r"\{(?=\d+\})")
_SPACES = re.compile(r"\s+")


@frozen(kw_only=True)
class _Review:
    """The reviews of one recipe in one repository."""

    name: str
    sessions: tuple[Session, ...]
    found: tuple[Finding, ...]


def has_reviews(report: BatchReport) -> bool:
    """Whether some session answered with findings, be it with none."""
    return any(findings(session) is not None for session in report.sessions)


def render(report: BatchReport) -> bytes:
    """The SARIF log in UTF-8. Reviews that found nothing are there, with no result."""
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [_run(report, review) for review in _reviews(report)],
    }
    return (json_inert(json.dumps(log, indent=2, ensure_ascii=True)) + "\n").encode()


def _reviews(report: BatchReport) -> Iterator[_Review]:
    groups: dict[str, list[Session]] = {}
    for session, repo in zip(report.sessions, repositories(report), strict=True):
        if findings(session) is not None:
            name = session.recipe if repo is None else f"{session.recipe}/{repo}"
            groups.setdefault(name, []).append(session)
    for name, sessions in groups.items():
        found = [one for session in sessions for one in findings(session) or ()]
        yield _Review(
            name=one_line(name, 200) or "-", sessions=tuple(sessions), found=tuple(_worst(found))
        )


def _worst(found: Sequence[Finding]) -> list[Finding]:
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda one: order[one.level])


def _run(report: BatchReport, review: _Review) -> JsonObject:
    rules = list(dict.fromkeys(one.rule for one in review.found))
    run: JsonObject = {
        "tool": {
            "driver": {
                "name": "harness-batch",
                "semanticVersion": report.run.version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "automationDetails": {"id": review.name},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report, review)],
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The repository's top"}}},
        "results": list(_results(review, rules)),
        "properties": {"run_id": report.run.run_id},
    }
    return run


def _rule(rule: str) -> JsonObject:
    words = rule.replace("-", " ")
    return {
        "id": rule,
        "name": "".join(part.capitalize() for part in rule.split("-")),
        "shortDescription": {"text": words[0].upper() + words[1:]},
    }


def _invocation(report: BatchReport, review: _Review) -> JsonObject:
    """3.20: when it ran, whether it came to its end, and what was left out."""
    invocation: JsonObject = {
        "executionSuccessful": all(
            session.status in {"passed", "cached"} for session in review.sessions
        )
    }
    for name, at in (
        ("startTimeUtc", report.run.started_at),
        ("endTimeUtc", report.run.finished_at),
    ):
        if at is not None:
            invocation[name] = f"{at:%Y-%m-%dT%H:%M:%SZ}"
    told = [
        f"the path {one_line(one.refused, 200)!r} is not one of the repository"
        for one in review.found[:RESULTS]
        if one.refused is not None
    ]
    if len(review.found) > RESULTS:
        told.append(f"{len(review.found) - RESULTS} findings are left out")
    if told:
        invocation["toolExecutionNotifications"] = [
            {"level": "warning", "message": {"text": _plain(text)}} for text in told[:100]
        ]
    return invocation


def _results(review: _Review, rules: Sequence[str]) -> Iterator[JsonObject]:
    seen: dict[str, int] = {}
    for one in review.found[:RESULTS]:
        print_ = fingerprint(one)
        seen[print_] = seen.get(print_, 0) + 1
        result: JsonObject = {
            "ruleId": one.rule,
            "ruleIndex": rules.index(one.rule),
            "level": one.level,
            "message": {"text": _message(one)},
            "partialFingerprints": {FINGERPRINT: f"{print_}:{seen[print_]}"},
            "properties": {"severity": one.severity, "item": one_line(one.item_key, 400)},
        }
        if one.path is not None:
            result["locations"] = [{"physicalLocation": _location(one)}]
        yield result


def fingerprint(finding: Finding) -> str:
    """32 hex digits that stay the same while line numbers change (3.27.17)."""
    said = _SPACES.sub(" ", finding.code or finding.message).strip()
    parts = (finding.rule, finding.path or "", said)
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _message(finding: Finding) -> str:
    text = _plain(excerpt(finding.message, 4_000)) or "(no words)"
    if finding.suggestion:
        text += f"\n\nSuggestion: {_plain(excerpt(finding.suggestion, 2_000))}"
    return text


def _plain(text: str) -> str:
    """No embedded link (3.11.6) and no placeholder (3.11.5) comes out of a model's words."""
    return _PLACEHOLDER.sub("{ ", _LINK.sub("] ", text))


def _location(finding: Finding) -> JsonObject:
    uri = quote(finding.path or "", safe="/-._~")
    location: JsonObject = {"artifactLocation": {"uri": uri, "uriBaseId": "SRCROOT"}}
    if finding.line is not None:
        region: JsonObject = {"startLine": finding.line}
        if finding.end_line is not None:
            region["endLine"] = finding.end_line
        if finding.code:
            region["snippet"] = {"text": excerpt(finding.code, 1_000)}
        location["region"] = region
    return location
