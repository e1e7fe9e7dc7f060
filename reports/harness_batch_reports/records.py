"""What a report is made of: rows of the `report_*` views as immutable records.

Times are aware datetimes in UTC, durations seconds, money Decimal US dollars (None = unpriced),
`input_tokens` is the total with what came from the cache. `cost_usd` and tokens of a session
include its child sessions. A report reads these records and nothing else.
"""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

JsonObject: TypeAlias = dict[str, Any]
"""A parsed JSON object, as the database's JSON columns hold it."""

Row: TypeAlias = dict[str, Any]
"""A row of a view by column name."""

STATUSES = ("passed", "failed", "errored", "cancelled", "skipped", "cached")
"""What a finished session can be; the database holds NULL for one that never ended."""


class ReportError(Exception):
    """A run cannot be read; the message says which file and why, in one line."""


@frozen(kw_only=True)
class Run:
    """One invocation of the runner."""

    run_id: str
    version: str
    argv: tuple[str, ...]
    ci_provider: str | None
    ci_url: str | None
    trigger: str | None
    shard_index: int | None
    shard_total: int | None
    started_at: datetime | None
    finished_at: datetime | None
    exit_code: int | None
    """None: the run was cut off before it ended."""
    budget_usd: Decimal | None
    lock_digest: str | None
    sandbox: JsonObject


@frozen(kw_only=True)
class Attempt:
    """One try of a session."""

    session_id: str
    attempt_id: str
    n: int
    status: str | None
    """One of `STATUSES`; None: it never ended."""
    reason: str | None
    """Stable code, as a session's; None when passed."""
    detail: str | None
    """The reason in one line; may quote the agent."""
    error_kind: str | None
    wall_s: float | None
    started_at: datetime | None
    finished_at: datetime | None


@frozen(kw_only=True)
class Check:
    """One check or expectation of a session's last attempt."""

    session_id: str
    name: str
    kind: str
    """`check` or `expect`."""
    passed: bool
    exit_code: int | None
    duration_s: float
    reason: str | None
    output: str | None
    """The end of what it printed."""

    @property
    def code(self) -> str:
        """`check:NAME` or `expect:NAME`, as a session's reason names it."""
        return f"{self.kind}:{self.name}"


@frozen(kw_only=True)
class Patch:
    """What the last attempt changed. `files` counts them, `paths` names them."""

    files: int
    added: int
    removed: int
    bytes: int
    sha256: str | None
    patch_id: str | None
    applies: bool | None
    refused: str | None
    """Why the patch rules refuse it."""
    paths: tuple[str, ...]


@frozen(kw_only=True)
class Session:
    """One agent working on one item: one line of every report."""

    session_id: str
    item_key: str
    item_digest: str
    recipe: str
    recipe_file: str | None
    folder: str | None
    """Name of the item's folder under `items/` of the run's folder."""
    params: JsonObject
    matrix: JsonObject
    agent: str
    model: str
    repo: str | None
    ref: str | None
    base_sha: str | None
    status: str | None
    """One of `STATUSES`; None: the session never ended."""
    reason: str | None
    """Stable code, e.g. `max_steps`, `check:tests`; None when passed."""
    detail: str | None
    """The reason in one line; may quote the agent."""
    flaky: bool
    attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    wall_s: float | None
    working_s: float | None
    steps: int
    tool_calls: int
    input_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    unpriced_calls: int
    model_calls: int
    error_kind: str | None
    answer: str | None
    denials: int
    attempt_id: str | None
    attempt_n: int | None
    patch: Patch | None
    """None: nothing was changed, or it never came to that."""
    checks: tuple[Check, ...] = ()
    earlier: tuple[Attempt, ...] = ()
    """The attempts before the last one, oldest first."""
    files: tuple[str, ...] = ()
    """Files of the last attempt that exist, relative to the run's folder, `/` between."""


@frozen(kw_only=True)
class Denial:
    """A call that the rules refused, and how often."""

    session_id: str
    item_key: str
    tool: str
    permission: str
    pattern: str
    rule: str | None
    source: str | None
    times: int


@frozen(kw_only=True)
class Notice:
    """Something a person should know. `level`: info, warning or error."""

    session_id: str | None
    level: str
    text: str
    ts: datetime | None


@frozen(kw_only=True)
class BatchReport:
    """A run as reports see it: sessions in order of their item keys."""

    run: Run
    sessions: tuple[Session, ...]
    denials: tuple[Denial, ...] = ()
    notices: tuple[Notice, ...] = ()
    folder: Path | None = None
    """Absolute folder of the database: attachments are looked up from here."""


@frozen(kw_only=True)
class Part:
    """One piece of a message: text, reasoning, a tool call, a step's usage."""

    part_id: str
    message_id: str
    idx: int
    type: str
    body: JsonObject


@frozen(kw_only=True)
class Message:
    """One message of a transcript with its parts in order."""

    message_id: str
    attempt_id: str
    attempt_n: int
    role: str
    model: str | None
    agent: str | None
    finish_reason: str | None
    error: str | None
    created_at: datetime | None
    parts: tuple[Part, ...] = ()


@frozen(kw_only=True)
class ModelCall:
    """One request to a provider."""

    attempt_id: str
    step: int
    try_: int
    purpose: str
    provider: str
    request_model: str
    started_at: datetime | None
    ttft_s: float | None
    duration_s: float | None
    finish_reason: str | None
    error_kind: str | None
    error: str | None
    http_status: int | None
    input_tokens: int | None
    cache_read_tokens: int | None
    output_tokens: int | None
    cost_usd: Decimal | None
    cost_source: str


@frozen(kw_only=True)
class ToolCall:
    """One tool call, run or refused. `status` is None when the runner died before its end."""

    attempt_id: str
    tool_call_id: str
    tool: str
    status: str | None
    error: str | None
    exit_code: int | None
    started_at: datetime | None
    duration_s: float | None
    output_bytes: int | None


@frozen(kw_only=True)
class ChildSession:
    """Who a child session is; it has no line in the report."""

    session_id: str
    parent_id: str
    depth: int
    item_key: str
    recipe: str
    agent: str
    model: str
    status: str
    reason: str | None
    detail: str | None


@frozen(kw_only=True)
class SessionTranscript:
    """All that was said and done in a session, over all attempts, in order."""

    session_id: str
    session: Session | None
    """None for a child session, which has no line in the report."""
    child: ChildSession | None = None
    """None for an item's own session."""
    messages: tuple[Message, ...]
    model_calls: tuple[ModelCall, ...]
    tool_calls: tuple[ToolCall, ...]
