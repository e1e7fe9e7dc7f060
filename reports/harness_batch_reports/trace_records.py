"""What the trace of a run is made of: rows of the `report_trace_*` views as immutable records."""

from datetime import datetime
from decimal import Decimal

from attrs import frozen

from harness_batch_reports.records import Run


@frozen(kw_only=True)
class TraceSession:
    """A session that began, of the plan or a child."""

    session_id: str
    parent_id: str | None
    item_key: str
    recipe: str
    agent: str
    model: str
    repo: str | None
    ref: str | None
    base_sha: str | None
    status: str
    reason: str | None
    detail: str | None
    attempts: int
    started_at: datetime
    finished_at: datetime | None
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None


@frozen(kw_only=True)
class TraceCall:
    """One request to a provider."""

    session_id: str
    model_call_id: str
    purpose: str
    provider: str
    request_model: str
    response_model: str | None
    response_id: str | None
    try_: int
    started_at: datetime
    ttft_s: float | None
    duration_s: float | None
    finish_reason: str | None
    error_kind: str | None
    error: str | None
    http_status: int | None
    input_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int
    output_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: Decimal | None


@frozen(kw_only=True)
class TraceTool:
    """One tool call, and what the rules said to it."""

    session_id: str
    tool_call_id: str
    tool: str
    status: str | None
    error: str | None
    started_at: datetime
    duration_s: float | None
    decision: str | None
    rule: str | None


@frozen(kw_only=True)
class Trace:
    """What spans are made of."""

    run: Run
    sessions: tuple[TraceSession, ...]
    calls: tuple[TraceCall, ...]
    tools: tuple[TraceTool, ...]
