"""Rows of the public database as immutable records: one class a table, one field a column.

Times are ISO 8601 text in UTC, money is Decimal in US dollars (None = unpriced), JSON columns are
plain values. `docs/analytics.md` describes the tables to people; `store/schema.sql` creates them.
"""

from decimal import Decimal
from typing import Any, Literal

from attrs import Factory, frozen

from harness_batch.messages import JsonObject

Status = Literal["passed", "failed", "errored", "cancelled", "skipped", "cached"]
AttemptErrorKind = Literal["infra", "provider", "agent", "policy", "task"]
CostSource = Literal["provider", "catalog", "config", "unpriced"]
ToolStatus = Literal["completed", "error", "denied", "interrupted", "timeout"]
Purpose = Literal["step", "compaction", "memory", "judge"]


@frozen(kw_only=True)
class Run:
    """One invocation."""

    run_id: str
    version: str
    argv: list[str]
    started_at: str
    ci_provider: str | None = None
    ci_url: str | None = None
    trigger: str | None = None
    shard_index: int | None = None
    shard_total: int | None = None
    finished_at: str | None = None
    exit_code: int | None = None
    budget_usd: Decimal | None = None
    lock_digest: str | None = None
    sandbox: JsonObject = Factory(dict)
    joined_runs: list[str] = Factory(list)
    """The runs of shards that this one was joined from."""


@frozen(kw_only=True)
class Session:
    """One agent working on one item. Totals are over all attempts, children left out."""

    session_id: str
    run_id: str
    item_key: str
    item_digest: str
    recipe: str
    agent: str
    model: str
    parent_id: str | None = None
    depth: int = 0
    params: JsonObject = Factory(dict)
    repo: str | None = None
    ref: str | None = None
    base_sha: str | None = None
    status: Status | None = None
    """None while it has not ended."""
    reason: str | None = None
    """Stable code, e.g. `max_steps`, `check:tests`; None when passed."""
    detail: str | None = None
    """The reason in one line of words."""
    flaky: bool = False
    attempts: int = 0
    started_at: str | None = None
    finished_at: str | None = None
    steps: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    recipe_file: str | None = None
    folder: str | None = None
    """Name of the item's folder under `items/`."""
    matrix: JsonObject = Factory(dict)


@frozen(kw_only=True)
class Attempt:
    """One try of a session."""

    attempt_id: str
    session_id: str
    n: int
    started_at: str
    status: Status | None = None
    reason: str | None = None
    detail: str | None = None
    error_kind: AttemptErrorKind | None = None
    retryable: bool = False
    wall_s: float | None = None
    working_s: float | None = None
    finished_at: str | None = None
    answer: str | None = None
    """What the model answered at the end, as text (JSON text when the recipe has a schema)."""


@frozen(kw_only=True)
class ModelCall:
    """One HTTP request to a provider, whatever its purpose or fate."""

    model_call_id: str
    session_id: str
    attempt_id: str
    message_id: str | None
    purpose: Purpose
    provider: str
    request_model: str
    step: int
    try_: int
    started_at: str
    response_model: str | None = None
    response_id: str | None = None
    ttft_s: float | None = None
    duration_s: float | None = None
    """None: the call was opened and never closed (the runner died)."""
    finish_reason: str | None = None
    error_kind: str | None = None
    error: str | None = None
    http_status: int | None = None
    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_5m_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    usage_raw: Any = None
    cost_usd: Decimal | None = None
    provider_cost_usd: Decimal | None = None
    cost_source: CostSource = "unpriced"
    price_version: str | None = None


@frozen(kw_only=True)
class ToolCall:
    """One tool call of the model, run or not."""

    tool_call_id: str
    session_id: str
    attempt_id: str
    message_id: str
    tool: str
    input: JsonObject
    started_at: str
    server: str | None = None
    status: ToolStatus | None = None
    """None: started and never ended (the runner died)."""
    error: str | None = None
    exit_code: int | None = None
    output_bytes: int | None = None
    duration_s: float | None = None


@frozen(kw_only=True)
class PermissionDecision:
    """What the rules said to one pattern of a tool call."""

    tool_call_id: str
    session_id: str
    permission: str
    pattern: str
    action: Literal["allow", "deny"]
    rule: str | None
    """`permission: pattern: action` of the deciding rule; None when no rule matched."""
    source: str
    """`default`, `config:FILE`, `agent:NAME`, `recipe:FILE:LINE`, `cli`; `none` without a rule."""
    decided_at: str


@frozen(kw_only=True)
class CheckResult:
    """One check or expectation after the agent's work."""

    session_id: str
    attempt_id: str
    name: str
    kind: Literal["check", "expect"]
    passed: bool
    exit_code: int | None = None
    duration_s: float = 0.0
    reason: str | None = None
    output: str | None = None
    """The end of what it printed."""


@frozen(kw_only=True)
class Patch:
    """What an attempt changed."""

    session_id: str
    attempt_id: str
    files: int
    added: int
    removed: int
    bytes: int
    sha256: str
    patch_id: str | None
    applies: bool
    refused: str | None = None
    """Why the patch rules refuse it; None when they do not."""
    paths: list[str] = Factory(list)


@frozen(kw_only=True)
class Job:
    """A background child session."""

    job_id: str
    session_id: str
    child_session_id: str
    agent: str
    description: str
    state: Literal["running", "completed", "error", "cancelled"]
    started_at: str
    finished_at: str | None = None


@frozen(kw_only=True)
class ProviderLimit:
    """How many requests a provider gets at a time from now on, and why that has changed."""

    provider: str
    requests: int
    """At a time; 0: none any more."""
    before: int
    cause: Literal["rate_limit", "overloaded", "headroom", "increase", "auth", "quota"]
    cool_down_s: float | None = None
    """Nothing goes out for so long, but what was refused and has waited for itself."""
    share_left: float | None = None
    """Of the tightest quota, 0 to 1, where the provider told it."""
    changed_at: str


@frozen(kw_only=True)
class Price:
    """A price that some model call was costed with."""

    price_version: str
    provider: str
    model: str
    unit: str
    """input, output, cache_read, cache_write or cache_write_1h; `input>200000`: of calls with more
    input tokens than that."""
    usd_per_mtok: Decimal
    valid_from: str | None = None
