"""Transcripts as other agents write them, small and true to their formats."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Json = dict[str, Any]
CLAUDE_ID = "9b2f3c1e-0d47-4a51-8a35-2f6f0c8f5a11"
CODEX_ID = "0199a213-81c0-7800-8aa1-bbab2a035a53"
GEMINI_ID = "f86f5318-f47b-4433-85f8-ec9d9a417f8e"


def jsonl(path: Path, rows: Sequence[Json]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


# ---- Claude Code


def _claude(kind: str, n: int, message: Json, **more: Any) -> Json:
    return {
        "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/home/me/shop",
        "sessionId": CLAUDE_ID, "version": "2.0.14", "gitBranch": "main", "type": kind,
        "message": message, "uuid": f"uuid-{n}", "timestamp": f"2026-03-01T10:00:{n:02d}.123Z",
    } | more  # fmt: skip


def _reply(
    n: int, id_: str, block: Json, usage: Json, stop: str | None = None, **more: Any
) -> Json:
    message = {
        "id": id_, "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
        "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return _claude("assistant", n, message, requestId=f"req_{id_}", **more)


def _usage(input_: int, written: int, read: int, output: int, hour: int = 0) -> Json:
    return {
        "input_tokens": input_, "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read, "output_tokens": output, "service_tier": "standard",
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour,
        },
    }  # fmt: skip


def claude_rows() -> list[Json]:
    """Two replies of the main thread, the first in three lines, and one of a subagent."""
    side = {"isSidechain": True, "agentId": "ad2d877"}
    tool = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    return [
        {"type": "summary", "summary": "Mend the shop", "leafUuid": "uuid-9"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        _claude("user", 1, {"role": "user", "content": "Mend the failing test, größer ✓"}),
        _reply(2, "msg_1", {"type": "thinking", "thinking": "Look first.", "signature": "x"},
               _usage(3, 1033, 28193, 2)),
        _reply(3, "msg_1", {"type": "text", "text": "I look."}, _usage(3, 1033, 28193, 2)),
        _reply(4, "msg_1", tool, _usage(3, 1033, 28193, 187, hour=1000), "tool_use"),
        _claude("user", 5, {"role": "user", "content": [
            {"tool_use_id": "toolu_1", "type": "tool_result", "content": "shop\ntests"}]}),
        _reply(6, "msg_s", {"type": "text", "text": "Found it."}, _usage(10, 0, 0, 5), "end_turn",
               **side),
        _reply(7, "msg_2", {"type": "text", "text": "Mended."}, _usage(8, 0, 29226, 40),
               "end_turn"),
    ]  # fmt: skip


CLAUDE_TOTALS = {
    "input_tokens": 3 + 1033 + 28193 + 10 + 8 + 29226, "cache_read_tokens": 28193 + 29226,
    "cache_write_5m_tokens": 33, "cache_write_1h_tokens": 1000, "output_tokens": 187 + 5 + 40,
}  # fmt: skip


# ---- Codex


def _codex(n: int, kind: str, payload: Json) -> Json:
    return {"timestamp": f"2026-03-02T11:00:{n:02d}.000Z", "type": kind, "payload": payload}


def _count(n: int, totals: Json | None, last: Json | None) -> Json:
    info = None
    if totals is not None:
        info = {
            "total_token_usage": totals, "last_token_usage": last, "model_context_window": 272000,
        }  # fmt: skip
    limits = {"primary": {"used_percent": 7.0, "window_minutes": 300}}
    return _codex(n, "event_msg", {"type": "token_count", "info": info, "rate_limits": limits})


def _tokens(input_: int, cached: int, output: int, reasoning: int) -> Json:
    return {
        "input_tokens": input_, "cached_input_tokens": cached, "output_tokens": output,
        "reasoning_output_tokens": reasoning, "total_tokens": input_ + output,
    }  # fmt: skip


def codex_rows() -> list[Json]:
    """Two requests; the totals of the first are told twice."""
    first, last = _tokens(9000, 2000, 300, 120), _tokens(11000, 8900, 60, 0)
    total = _tokens(20000, 10900, 360, 120)
    return [
        _codex(0, "session_meta", {
            "id": CODEX_ID, "timestamp": "2026-03-02T11:00:00.000Z", "cwd": "/home/me/shop",
            "originator": "codex_exec", "cli_version": "0.46.0", "instructions": None,
            "git": {"commit_hash": "9f2c1e0d", "branch": "main"}, "model_provider": "openai"}),
        _codex(1, "turn_context", {"cwd": "/home/me/shop", "model": "gpt-5-codex",
                                   "approval_policy": "never", "summary": "auto"}),
        _codex(2, "response_item", {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "Mend it."}]}),
        _count(3, None, None),
        _codex(4, "response_item", {"type": "reasoning", "encrypted_content": "x", "summary": [
            {"type": "summary_text", "text": "Look first."}]}),
        _codex(5, "response_item", {"type": "function_call", "name": "shell", "call_id": "call_1",
                                    "arguments": '{"command": ["bash", "-lc", "ls"]}'}),
        _count(6, first, first),
        _codex(7, "response_item", {"type": "function_call_output", "call_id": "call_1",
                                    "output": '{"output": "shop\\n"}'}),
        _count(8, first, first),
        _codex(9, "response_item", {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "Mended."}]}),
        _codex(10, "event_msg", {"type": "agent_message", "message": "Mended."}),
        _count(11, total, last),
    ]  # fmt: skip


CODEX_TOTALS = {
    "input_tokens": 20000, "cache_read_tokens": 10900, "output_tokens": 360,
    "reasoning_tokens": 120,
}  # fmt: skip


# ---- Gemini CLI


def gemini_document() -> Json:
    """Two replies, one of them with a tool call that failed."""
    return {
        "sessionId": GEMINI_ID, "projectHash": "79b6fa86", "startTime": "2026-03-03T14:57:28.974Z",
        "lastUpdated": "2026-03-03T14:58:07.161Z",
        "messages": [
            {"id": "g1", "timestamp": "2026-03-03T14:57:28.974Z", "type": "user",
             "content": [{"text": "Mend it."}]},
            {"id": "g2", "timestamp": "2026-03-03T14:57:40.000Z", "type": "gemini", "content": "",
             "thoughts": [{"subject": "Look", "description": "first",
                           "timestamp": "2026-03-03T14:57:39.000Z"}],
             "tokens": {"input": 7000, "output": 40, "cached": 3000, "thoughts": 90, "tool": 10,
                        "total": 7140},
             "model": "gemini-2.5-pro",
             "toolCalls": [{"id": "read_file-1", "name": "read_file", "args": {"path": "x"},
                            "status": "error", "timestamp": "2026-03-03T14:57:41.000Z",
                            "result": [{"functionResponse": {
                                "id": "read_file-1", "name": "read_file",
                                "response": {"error": "File not found"}}}]}]},
            {"id": "g3", "timestamp": "2026-03-03T14:58:07.161Z", "type": "gemini",
             "content": "Mended.", "thoughts": [], "model": "gemini-2.5-pro",
             "tokens": {"input": 7200, "output": 12, "cached": 7000, "thoughts": 0, "tool": 0,
                        "total": 7212}},
        ],
    }  # fmt: skip


GEMINI_TOTALS = {
    "input_tokens": 14210, "cache_read_tokens": 10000, "output_tokens": 142, "reasoning_tokens": 90,
}  # fmt: skip


# ---- opencode

_TABLES = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT,
    slug TEXT NOT NULL, directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
"""
_NOW = 1772600000000


def opencode_database(path: Path) -> Path:
    """A session with a child; two replies and one."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_TABLES)
        for name, parent in (("ses_a", None), ("ses_b", "ses_a")):
            connection.execute(
                "INSERT INTO session VALUES (?, 'p', ?, 's', '/home/me/shop', 't', '1.2.0', ?, ?)",
                [name, parent, _NOW, _NOW],
            )
        _opencode(connection, "msg_1", "ses_a", 1, {"role": "user", "agent": "build"},
                  {"type": "text", "text": "Mend it."})  # fmt: skip
        _opencode(connection, "msg_2", "ses_a", 2,
                  _answer("tool-calls", 0.012, _opencode_tokens(100, 50, 20, 4000, 900)),
                  {"type": "step-start"},
                  {"type": "tool", "callID": "call_1", "tool": "bash", "state": {
                      "status": "completed", "input": {"command": "ls"}, "output": "shop\n",
                      "title": "ls", "metadata": {}, "time": {"start": 1000, "end": 1250}}},
                  {"type": "step-finish", "reason": "tool-calls", "cost": 0.012,
                   "tokens": _opencode_tokens(100, 50, 20, 4000, 900)})  # fmt: skip
        _opencode(connection, "msg_3", "ses_a", 3,
                  _answer("stop", 0.004, _opencode_tokens(30, 12, 0, 5000, 0)),
                  {"type": "text", "text": "Mended."})  # fmt: skip
        _opencode(connection, "msg_4", "ses_b", 4,
                  _answer("stop", 0.001, _opencode_tokens(7, 3, 0, 0, 0)),
                  {"type": "text", "text": "Seen."})  # fmt: skip
    return path


def _opencode_tokens(input_: int, output: int, reasoning: int, read: int, write: int) -> Json:
    cache = {"read": read, "write": write}
    return {"input": input_, "output": output, "reasoning": reasoning, "cache": cache}


def _answer(finish: str, cost: float, tokens: Json) -> Json:
    return {
        "role": "assistant", "parentID": "msg_1", "modelID": "claude-sonnet-4-5", "mode": "build",
        "providerID": "anthropic", "cost": cost, "tokens": tokens, "finish": finish,
        "time": {"created": _NOW, "completed": _NOW + 900},
    }  # fmt: skip


def _opencode(
    connection: sqlite3.Connection, name: str, session: str, n: int, data: Json, *parts: Json
) -> None:
    moment = _NOW + n * 1000
    connection.execute(
        "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
        [name, session, moment, moment, json.dumps(data)],
    )
    for i, part in enumerate(parts):
        connection.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
            [f"prt_{name}_{i}", name, session, moment + i, moment, json.dumps(part)],
        )


OPENCODE_TOTALS = {
    "input_tokens": 100 + 4000 + 900 + 30 + 5000 + 7, "cache_read_tokens": 9000,
    "cache_write_5m_tokens": 900, "output_tokens": 70 + 12 + 3, "reasoning_tokens": 20,
}  # fmt: skip
