"""A finished run as spans of a trace: run, sessions, model calls, tool calls. Pure.

Ids are hashes of our own, so the same run gives the same trace however often it is exported. Names
of attributes stand in `otel_names.json` and nowhere else.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import TypeAlias

from attrs import frozen

from harness_batch_reports.trace_records import Trace, TraceCall, TraceSession, TraceTool

Value: TypeAlias = str | int | float | tuple[str, ...]
Facts: TypeAlias = Mapping[str, Value | Decimal | None]
_TEXT = 1_000
"""Characters of a text that a repository or a model wrote."""


@frozen(kw_only=True)
class Span:
    """One span. `error` is None when it went well."""

    id: int
    parent_id: int | None
    name: str
    outward: bool
    """A request to somebody else (span kind client)."""
    started_at: datetime
    finished_at: datetime
    attributes: Mapping[str, Value]
    error: str | None = None


@cache
def _names() -> Mapping[str, Mapping[str, str]]:
    text = files("harness_batch_reports").joinpath("otel_names.json").read_text("utf-8")
    names: Mapping[str, Mapping[str, str]] = json.loads(text)
    return names


def mapping_version() -> str:
    """`harness-batch-otel/1`: names the file of names."""
    return f"harness-batch-otel/{_names()['version']}"


def trace_id(run_id: str) -> int:
    """128 bits, never 0."""
    return _hash(f"trace:{run_id}", 16)


def spans(trace: Trace) -> Iterator[Span]:
    """The run's span, then its sessions', requests' and tool calls'."""
    yield _run_span(trace)
    known = {session.session_id for session in trace.sessions}
    for session in trace.sessions:
        yield _session_span(trace, session, known)
    ends = {s.session_id: s.finished_at or _end_of(trace) for s in trace.sessions}
    for call in trace.calls:
        if call.session_id in known:
            yield _call_span(call, ends[call.session_id])
    for tool in trace.tools:
        if tool.session_id in known:
            yield _tool_span(tool, ends[tool.session_id])


def _run_span(trace: Trace) -> Span:
    run = trace.run
    recipes = list(dict.fromkeys(s.recipe for s in trace.sessions if s.parent_id is None))
    name = ", ".join(recipes[:3]) or "nothing"
    costs = [s.cost_usd for s in trace.sessions if s.cost_usd is not None]
    facts: Facts = {
        "operation": _operation("run"),
        "pipeline": name,
        "pipeline_run": run.run_id,
        "pipeline_url": run.ci_url,
        "pipeline_result": "error" if run.exit_code is None else _result(run.exit_code),
        "exit_code": run.exit_code,
        "cost_usd": sum(costs, Decimal(0)) if costs else None,
    }
    start = run.started_at or min((s.started_at for s in trace.sessions), default=_EPOCH)
    return Span(
        id=_hash(run.run_id),
        parent_id=None,
        name=f"{_operation('run')} {name}",
        outward=False,
        started_at=start,
        finished_at=max(start, _end_of(trace)),
        attributes=_attributes(facts),
        error=None if run.exit_code == 0 else f"exit code {run.exit_code}",
    )


def _session_span(trace: Trace, session: TraceSession, known: set[str]) -> Span:
    good = session.status in ("passed", "cached", "skipped")
    provider, _, model = session.model.partition("/")
    facts: Facts = {
        "operation": _operation("session"),
        "provider": _provider(provider),
        "request_model": model or None,
        "conversation": session.session_id,
        "agent": session.agent or None,
        "suite": session.recipe,
        "case": session.item_key,
        "case_result": "pass" if good else "fail",
        "outcome": session.status,
        "reason": session.reason,
        "attempts": session.attempts,
        "repository": PurePath(session.repo).name if session.repo else None,
        "ref": session.ref,
        "revision": session.base_sha,
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        "cost_usd": session.cost_usd,
        "error_type": None if good else session.reason or session.status,
    }
    parent = session.parent_id if session.parent_id in known else None
    return Span(
        id=_hash(session.session_id),
        parent_id=_hash(parent or trace.run.run_id),
        name=f"{_operation('session')} {session.agent}".rstrip(),
        outward=False,
        started_at=session.started_at,
        finished_at=max(session.started_at, session.finished_at or _end_of(trace)),
        attributes=_attributes(facts),
        error=None if good else session.detail or session.reason or session.status,
    )


def _call_span(call: TraceCall, session_end: datetime) -> Span:
    facts: Facts = {
        "operation": _operation("model_call"),
        "provider": _provider(call.provider),
        "request_model": call.request_model,
        "response_model": call.response_model,
        "response_id": call.response_id,
        "finish_reasons": (call.finish_reason,) if call.finish_reason else None,
        "conversation": call.session_id,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cache_read_tokens": call.cache_read_tokens,
        "cache_write_tokens": call.cache_write_tokens or None,
        "reasoning_tokens": call.reasoning_tokens,
        "cost_usd": call.cost_usd,
        "purpose": call.purpose,
        "try": call.try_,
        "ttft_s": call.ttft_s,
        "http_status": call.http_status,
        "error_type": call.error_kind,
    }
    return Span(
        id=_hash(call.model_call_id),
        parent_id=_hash(call.session_id),
        name=f"{_operation('model_call')} {call.request_model}",
        outward=True,
        started_at=call.started_at,
        finished_at=_after(call.started_at, call.duration_s, session_end),
        attributes=_attributes(facts),
        error=(call.error or call.error_kind) if call.error_kind else None,
    )


def _tool_span(tool: TraceTool, session_end: datetime) -> Span:
    good = tool.status == "completed"
    facts: Facts = {
        "operation": _operation("tool_call"),
        "tool": tool.tool,
        "tool_call": tool.tool_call_id,
        "conversation": tool.session_id,
        "decision": tool.decision,
        "rule": tool.rule,
        "error_type": None if good else tool.status or "interrupted",
    }
    return Span(
        id=_hash(tool.tool_call_id),
        parent_id=_hash(tool.session_id),
        name=f"{_operation('tool_call')} {tool.tool}",
        outward=False,
        started_at=tool.started_at,
        finished_at=_after(tool.started_at, tool.duration_s, session_end),
        attributes=_attributes(facts),
        error=None if good else tool.error or tool.status or "never ended",
    )


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_RESULTS = {
    0: "success",
    1: "failure",
    4: "timeout",
    130: "cancellation",
    143: "cancellation",
}
"""`cicd.pipeline.result` by exit code; the others are `error`."""


def _result(exit_code: int) -> str:
    return _RESULTS.get(exit_code, "error")


def _end_of(trace: Trace) -> datetime:
    """The run's end, or the last thing that is known of one that was cut off."""
    if trace.run.finished_at is not None:
        return trace.run.finished_at
    moments = [s.finished_at or s.started_at for s in trace.sessions]
    return max(moments, default=trace.run.started_at or _EPOCH)


def _after(start: datetime, seconds: float | None, session_end: datetime) -> datetime:
    """When it ended; what never did, ended with its session."""
    if seconds is None:
        return max(start, session_end)
    return start + timedelta(seconds=max(0.0, seconds))


def _operation(kind: str) -> str:
    return _names()["operations"][kind]


def _provider(name: str) -> str | None:
    return _names()["providers"].get(name, name) or None


def _attributes(facts: Facts) -> dict[str, Value]:
    """By the names of the mapping; what is not known is left out."""
    names = _names()["attributes"]
    found: dict[str, Value] = {}
    for key, value in facts.items():
        match value:
            case None:
                continue
            case Decimal():
                found[names[key]] = float(value)
            case str():
                found[names[key]] = value[:_TEXT]
            case _:
                found[names[key]] = value
    return found


def _hash(text: str, size: int = 8) -> int:
    """A span's id, 64 bits, never 0."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=size).digest()
    return int.from_bytes(digest, "big") or 1
