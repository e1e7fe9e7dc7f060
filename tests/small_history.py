"""A history small enough to compute every answer by hand.

Two nights: `a` passed, `b` failed with a child `c` (unpriced), `d` passed what `b` failed, and the
runner died in `e`, whose one call was opened and never closed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness_batch.store.database import Database

Row = dict[str, Any]


def at(text: str) -> datetime:
    """`1 10:30` is that time of March 1st, 2026."""
    day, _, clock = text.partition(" ")
    hour, _, minute = clock.partition(":")
    return datetime(2026, 3, int(day), int(hour), int(minute), tzinfo=UTC)


def session(name: str, run: str, item: str, digest: str, **more: Any) -> Row:
    """A session of the recipe `fix`."""
    recipe = item.partition("/")[0]
    return {
        "session_id": name, "run_id": run, "depth": 0, "item_key": item, "item_digest": digest,
        "recipe": recipe, "agent": "build", "model": "p/big", "flaky": False,
    } | more  # fmt: skip


def attempt(session_id: str, n: int, wall: float | None, working: float | None) -> Row:
    """Attempt n; None for one that never ended."""
    return {
        "attempt_id": f"{session_id}{n}", "session_id": session_id, "n": n, "wall_s": wall,
        "working_s": working,
    }  # fmt: skip


def call(name: str, attempt_id: str, model: str, when: str, **more: Any) -> Row:
    """A model call that went well; `usage` is input, from cache, written for 5 min, 1 h, output."""
    provider, _, request_model = model.partition("/")
    usage = more.pop("usage", None)
    names = (
        "input_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens",
        "output_tokens",
    )  # fmt: skip
    tokens = dict(zip(names, usage, strict=True)) if usage else {}
    cost = more.pop("cost", None)
    return {
        "model_call_id": name, "session_id": attempt_id[0], "attempt_id": attempt_id,
        "message_id": f"msg_{name}", "purpose": "step", "provider": provider,
        "request_model": request_model, "step": 1, "try": 1, "started_at": at(when),
        "cost_usd": None if cost is None else Decimal(cost),
    } | tokens | more  # fmt: skip


def tool(name: str, attempt_id: str, kind: str, status: str | None, seconds: float | None) -> Row:
    """A tool call."""
    return {
        "tool_call_id": name, "session_id": attempt_id[0], "attempt_id": attempt_id,
        "message_id": "msg", "tool": kind, "status": status, "duration_s": seconds,
        "started_at": at("1 10:00"),
    }  # fmt: skip


def decision(call_id: str, session_id: str, seq: int, **more: Any) -> Row:
    """A denial that no rule lifted."""
    return {
        "tool_call_id": call_id, "session_id": session_id, "permission": "bash",
        "pattern": "git push", "action": "deny", "rule": None, "source": "none", "seq": seq,
    } | more  # fmt: skip


TWO_NIGHTS: dict[str, Sequence[Row]] = {
    "run": [
        {"run_id": "r1", "version": "0.1.0", "argv": ["run"], "budget_usd": Decimal(2),
         "started_at": at("1 10:00"), "finished_at": at("1 11:00"), "exit_code": 1},
        {"run_id": "r2", "version": "0.1.0", "argv": ["run"],
         "started_at": at("2 10:00"), "finished_at": at("2 11:00")},
    ],
    "session": [
        session("a", "r1", "fix/x", "d1", status="passed", started_at=at("1 10:00"),
                finished_at=at("1 10:01")),
        session("b", "r1", "fix/y", "d2", status="failed", reason="check:tests",
                started_at=at("1 10:00"), finished_at=at("1 10:02")),
        session("c", "r1", "fix/y", "d2", status="passed", parent_id="b", depth=1,
                model="p/small", started_at=at("1 10:00"), finished_at=at("1 10:01")),
        session("d", "r2", "fix/y", "d2", status="passed", started_at=at("2 10:00"),
                finished_at=at("2 10:01")),
        session("e", "r2", "fix/x", "d3", model="q/other", started_at=at("2 10:00")),
    ],
    "attempt": [
        attempt("a", 1, 60, 50), attempt("b", 1, 100, 90), attempt("b", 2, 20, 10),
        attempt("c", 1, 10, 10), attempt("d", 1, 30, 30), attempt("e", 1, None, None),
    ],
    "message": [
        {"message_id": f"msg_{name}", "session_id": of, "role": "assistant",
         "finish_reason": "stop"}
        for name, of in (("m1", "a"), ("m2", "a"), ("m4", "b"), ("m5", "c"), ("m6", "d"))
    ],
    "model_call": [
        call("m1", "a1", "p/big", "1 10:00", ttft_s=0.5, duration_s=2.0, cost="0.0100",
             usage=(1000, 0, 800, 0, 100), reasoning_tokens=10,
             provider_cost_usd=Decimal("0.0110")),
        call("m2", "a1", "p/big", "1 10:01", ttft_s=0.7, duration_s=4.0, cost="0.0050",
             usage=(1500, 800, 0, 100, 50)),
        call("m3", "b1", "p/big", "1 10:00", duration_s=1.0, error_kind="rate_limit",
             http_status=429),
        call("m4", "b1", "p/big", "1 10:01", ttft_s=1.5, duration_s=6.0, cost="0.0200",
             usage=(2000, 1000, 0, 0, 200), provider_cost_usd=Decimal("0.0150"), **{"try": 2}),
        call("m5", "c1", "p/small", "1 10:01", ttft_s=0.1, duration_s=1.0,
             usage=(400, 0, 0, 0, 40)),
        call("m6", "d1", "p/big", "2 10:00", ttft_s=2.5, duration_s=8.0, cost="0.0300",
             usage=(3000, 3000, 0, 0, 10)),
        call("m7", "e1", "q/other", "2 10:00"),
    ],
    "tool_call": [
        tool("t1", "a1", "bash", "completed", 3.0), tool("t2", "b1", "bash", "error", 1.0),
        tool("t3", "b1", "bash", "denied", None), tool("t4", "b1", "bash", None, None),
        tool("t5", "d1", "read", "completed", 2.0),
    ],
    "permission_decision": [
        decision("t1", "a", 1, action="allow", rule="bash: *: allow", source="cli"),
        decision("t2", "a", 2), decision("t3", "b", 3),
        decision("t4", "b", 4, permission="edit", pattern=".env", rule="edit: .env: deny",
                 source="default"),
    ],
}  # fmt: skip


def _calls(session_id: str, model: str, tokens: int, cost: str) -> Row:
    usage = (tokens, 0, 0, 0, 0)
    return call(f"m{session_id}", f"{session_id}1", model, "3 10:00", usage=usage, cost=cost)


MODELS: dict[str, Sequence[Row]] = {
    "session": [
        session("a", "r", "job/x", "d", status="passed", model="p/big", started_at=at("3 10:00"),
                finished_at=at("3 10:04")),
        session("b", "r", "job/x", "d", status="failed", model="q/other",
                started_at=at("3 10:00"), finished_at=at("3 10:02")),
        session("c", "r", "job/y", "d", status="passed", model="p/big", started_at=at("3 10:00"),
                finished_at=at("3 10:09")),
    ],
    "attempt": [attempt("a", 1, 240, 240), attempt("b", 1, 120, 120), attempt("c", 1, 9, 9)],
    "message": [
        {"message_id": f"msg_m{of}", "session_id": of, "role": "assistant", "finish_reason": "stop"}
        for of in "abc"
    ],
    "model_call": [
        _calls("a", "p/big", 100, "0.4"), _calls("b", "q/other", 300, "0.1"),
        _calls("c", "p/big", 1, "9"),
    ],
}  # fmt: skip
"""Two models on one item, and one of them on another item as well."""

OUTLIER: dict[str, Sequence[Row]] = {
    "session": [
        session(name, "r", f"job/{name}", "d", status="passed", started_at=at("3 10:00"),
                finished_at=at("3 10:01"))
        for name in "abcdef"
    ],
    "attempt": [attempt(name, 1, 60, 60) for name in "abcdef"],
    "model_call": [
        _calls(name, "p/big", tokens, "0.1")
        for name, tokens in zip("abcdef", (10, 20, 30, 40, 50, 500), strict=True)
    ],
}  # fmt: skip
"""Six sessions, the last of which used far more tokens than the others."""


def build(path: Path, tables: dict[str, Sequence[Row]]) -> Path:
    """A database with these rows, totals computed."""
    database = Database(path)
    database.write({name: [_plain(row) for row in rows] for name, rows in tables.items()})
    database.close({})
    return path


def _plain(row: Row) -> Row:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
    }
