"""A finished run as one JSON object for scripts, and the schema it keeps.

Money is exact decimal text, `null` where nothing has a price; `unpriced_calls` says how many calls
are missing in it. Times are ISO 8601 in UTC. Later versions only add keys.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files

from harness_batch_reports import figures
from harness_batch_reports.allow import allowing
from harness_batch_reports.answers import answer_json
from harness_batch_reports.hostile import json_inert
from harness_batch_reports.reasons import check_meaning, kind, meaning
from harness_batch_reports.records import BatchReport, Check, JsonObject, Patch, Session
from harness_batch_reports.verdict import elapsed, outcome, totals

_ODD = re.compile(r"[^\n\x20-\x7e]")

SCHEMA_VERSION = 1
"""Raised when a key changes its meaning, which no version has done yet."""

CONCLUSIONS = {
    0: "passed",
    1: "failed",
    2: "invalid",
    3: "errored",
    4: "stopped",
    130: "interrupted",
    143: "interrupted",
}
"""The exit code in a word."""


def result(report: BatchReport) -> JsonObject:
    """The run; valid against `result_schema()`."""
    run = report.run
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "version": run.version,
        "exit_code": run.exit_code,
        "conclusion": conclusion(run.exit_code),
        "started_at": _time(run.started_at),
        "finished_at": _time(run.finished_at),
        "argv": list(run.argv),
        "ci": {"provider": run.ci_provider, "url": run.ci_url, "trigger": run.trigger},
        "shard": {"index": run.shard_index, "total": run.shard_total} if run.shard_total else None,
        "budget_usd": figures.decimal_text(run.budget_usd),
        "lock_digest": run.lock_digest,
        "sandbox": run.sandbox,
        "folder": str(report.folder) if report.folder is not None else None,
        "totals": _totals(report),
        "sessions": [_session(session) for session in report.sessions],
        "denials": list(_denials(report)),
        "allowing": [
            {"recipe": found.recipe, "file": found.file, "yaml": found.yaml}
            for found in allowing(report)
        ],
        "notices": [
            {
                "level": notice.level,
                "text": notice.text,
                "session_id": notice.session_id,
                "at": _time(notice.ts),
            }
            for notice in report.notices
        ],
    }


def as_text(document: JsonObject) -> str:
    """The object as indented JSON, safe to print into a CI system's log."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    # A lone surrogate cannot be written as UTF-8, an override would reorder what a reader sees.
    return json_inert(_ODD.sub(_escaped, text)) + "\n"


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def result_schema() -> JsonObject:
    """The JSON Schema (2020-12) of `result`."""
    text = files("harness_batch_reports").joinpath("result.schema.json").read_text("utf-8")
    schema: JsonObject = json.loads(text)
    return schema


def conclusion(exit_code: int | None) -> str:
    """The exit code in a word; `unfinished` for a run that was cut off."""
    return "unfinished" if exit_code is None else CONCLUSIONS.get(exit_code, "errored")


def _totals(report: BatchReport) -> JsonObject:
    sums = totals(report.sessions)
    statuses = ("passed", "failed", "errored", "cancelled", "skipped", "cached", "unfinished")
    return {
        "sessions": sums.sessions,
        **{status: sums.statuses.get(status, 0) for status in statuses},
        "flaky": sums.flaky,
        "checks": sums.checks,
        "checks_failed": sums.checks_failed,
        "denials": sums.denials,
        "steps": sums.steps,
        "tool_calls": sums.tool_calls,
        "model_calls": sums.model_calls,
        "unpriced_calls": sums.unpriced_calls,
        "cost_usd": figures.decimal_text(sums.cost_usd),
        "input_tokens": sums.input_tokens,
        "cache_read_tokens": sums.cache_read_tokens,
        "output_tokens": sums.output_tokens,
        "files_changed": sums.files_changed,
        "seconds": elapsed(report),
    }


def _session(session: Session) -> JsonObject:
    passed = kind(session) == "passed"
    return {
        "session_id": session.session_id,
        "item_key": session.item_key,
        "item_digest": session.item_digest,
        "recipe": session.recipe,
        "recipe_file": session.recipe_file,
        "params": session.params,
        "matrix": session.matrix,
        "agent": session.agent,
        "model": session.model,
        "repo": session.repo,
        "ref": session.ref,
        "base_sha": session.base_sha,
        "status": outcome(session),
        "reason": session.reason,
        "type": None if passed else meaning(session).type,
        "detail": session.detail,
        "error_kind": session.error_kind,
        "flaky": session.flaky,
        "attempts": session.attempts,
        "started_at": _time(session.started_at),
        "finished_at": _time(session.finished_at),
        "seconds": session.wall_s,
        "working_seconds": session.working_s,
        **_usage(session),
        "denials": session.denials,
        "answer": session.answer,
        "answer_json": answer_json(session.answer),
        "checks": [_check(check) for check in session.checks],
        "patch": _patch(session.patch) if session.patch is not None else None,
        "files": list(session.files),
    }


def _usage(session: Session) -> JsonObject:
    return {
        "steps": session.steps,
        "tool_calls": session.tool_calls,
        "model_calls": session.model_calls,
        "unpriced_calls": session.unpriced_calls,
        "cost_usd": figures.decimal_text(session.cost_usd),
        "input_tokens": session.input_tokens,
        "cache_read_tokens": session.cache_read_tokens,
        "output_tokens": session.output_tokens,
    }


def _check(check: Check) -> JsonObject:
    return {
        "name": check.name,
        "kind": check.kind,
        "passed": check.passed,
        "type": check_meaning(check).type,
        "exit_code": check.exit_code,
        "seconds": check.duration_s,
        "reason": check.reason,
        "output": check.output,
    }


def _patch(patch: Patch) -> JsonObject:
    return {
        "files": patch.files,
        "added": patch.added,
        "removed": patch.removed,
        "bytes": patch.bytes,
        "sha256": patch.sha256,
        "patch_id": patch.patch_id,
        "applies": patch.applies,
        "refused": patch.refused,
        "paths": list(patch.paths),
    }


def _denials(report: BatchReport) -> Iterator[JsonObject]:
    for denial in report.denials:
        yield {
            "session_id": denial.session_id,
            "item_key": denial.item_key,
            "tool": denial.tool,
            "permission": denial.permission,
            "pattern": denial.pattern,
            "rule": denial.rule,
            "source": denial.source,
            "times": denial.times,
        }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
