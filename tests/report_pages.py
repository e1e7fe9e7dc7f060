"""Runs for the HTML page: one as people have it, a hostile one, one with very many parts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import report_rows
import report_views
from harness_batch_reports.html_run import html_page
from harness_batch_reports.read import read_run

Tables = dict[str, list[dict[str, Any]]]
START = datetime(2026, 3, 1, 4, 0, 1, tzinfo=UTC)
PATCH = """\
From 9f2c1e0d Mon Sep 17 00:00:00 2001
Subject: [PATCH] Say Usage with a capital letter

diff --git a/src/cli/help.py b/src/cli/help.py
index 83db48f..bf269f4 100644
--- a/src/cli/help.py
+++ b/src/cli/help.py
@@ -12,5 +12,5 @@ def usage(name: str) -> str:
     words = ["run", "plan"]
-    return f"usage: {name} " + "|".join(words)
+    return f"Usage: {name} " + " | ".join(words)

"""


def write(folder: Path, tables: Tables) -> Path:
    """The page of the tables' run at `folder/report.html`, made as the program makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    database = report_views.write(folder / "run.duckdb", tables)
    attempt = folder / "items" / "fix-lint_package=cli" / "attempt-2"
    attempt.mkdir(parents=True)
    (attempt / "change.patch").write_text(PATCH)
    page = folder / "report.html"
    page.write_bytes(page_of(database))
    return page


def page_of(database: Path) -> bytes:
    """The page of the database's newest run."""
    return html_page(database, read_run(database))


def night() -> Tables:
    """A night with every kind of ending, calls of three models, and what was said."""
    tables = {**report_rows.nightly()}
    talk = report_rows.talk()
    tables["report_message"] = [
        {**row, "session_id": f"ses_{name}", "message_id": f"{row['message_id']}_{name}"}
        for name in ("cli", "core")
        for row in talk["report_message"]
    ]
    tables["report_part"] = [
        {**row, "session_id": f"ses_{name}", "message_id": f"{row['message_id']}_{name}",
         "part_id": f"{row['part_id']}_{name}"}
        for name in ("cli", "core")
        for row in talk["report_part"]
    ]  # fmt: skip
    tables["report_model_call"] = list(_model_calls())
    tables["report_tool_call"] = list(_tool_calls())
    return tables


def _model_calls() -> Iterator[dict[str, Any]]:
    models = (("anthropic", "claude-sonnet-5"), ("openai", "gpt-5"), ("mine", "coder"))
    for name, number in (("cli", 22), ("core", 9), ("docs", 12), ("plugins", 7)):
        for step in range(number):
            provider, model = models[0 if step % 5 else (step // 5) % 3]
            failed = step == 3
            yield {
                "session_id": f"ses_{name}",
                "attempt_id": f"att_{name}",
                "step": step + 1,
                "try": 1,
                "purpose": "step",
                "provider": provider,
                "request_model": model,
                "started_at": (START + timedelta(seconds=8 * step)).isoformat(),
                "ttft_s": 0.8,
                "duration_s": 2.0 + step % 4,
                "error_kind": "unavailable" if failed else None,
                "error": "HTTP 529: overloaded" if failed else None,
                "input_tokens": 0 if failed else 9_000 + 900 * step,
                "cache_read_tokens": 0 if failed else 7_500 + 700 * step,
                "output_tokens": 0 if failed else 310,
                "cost_usd": None if failed or provider == "mine" else Decimal("0.0187"),
                "cost_source": "config",
            }


def _tool_calls() -> Iterator[dict[str, Any]]:
    tools = ("read", "grep", "bash", "edit", "bash", "webfetch")
    for name, number in (("cli", 20), ("core", 14)):
        for index in range(number):
            tool = tools[index % len(tools)]
            denied = tool == "webfetch"
            yield {
                "session_id": f"ses_{name}",
                "attempt_id": f"att_{name}",
                "tool_call_id": f"tcl_{name}_{index}",
                "tool": tool,
                "status": "denied" if denied else "completed",
                "error": "no rule allows it" if denied else None,
                "started_at": (START + timedelta(seconds=8 * index + 5)).isoformat(),
                "duration_s": 2.5 if tool == "bash" else 0.05,
                "output_bytes": 1_240,
            }


def hostile(texts: tuple[str, ...]) -> Tables:
    """One session in which the texts stand wherever somebody else could have written."""
    every = "\n".join(texts)
    one = report_rows.session("evil", item_key=every, recipe=every, agent=every, model=every,
                              status="failed", reason=f"check:{every}", detail=every,
                              answer=every, patch_paths=[every], patch_refused=every)  # fmt: skip
    bodies: list[dict[str, Any]] = [
        body
        for text in texts
        for body in (
            {"type": "text", "text": text},
            {"type": "reasoning", "text": text},
            {"type": "tool_use", "name": text, "state": {
                "type": "completed", "title": text, "input": {"command": text, "other": text},
                "output": text, "duration_ms": 1}},
            {"type": "subtask", "child_session": text, "agent": text, "description": text},
            {"type": "compaction", "summary": text},
            {"type": "step_finish", "usage": {"input": text}, "reason": text},
        )
    ]  # fmt: skip
    return {
        "report_run": [report_rows.run(argv=["run", every], ci_url=every, trigger=every)],
        "report_session": [one],
        "report_check": [report_rows.check(every, "evil", passed=False, reason=every,
                                           output=every)],
        "report_denial": [report_rows.denial("evil", every, every, rule=every, source=every)],
        "report_notice": [{"run_id": report_rows.RUN, "level": "warning", "text": every}],
        **_said("evil", [("user", bodies[:1]), ("assistant", bodies)]),
        "report_tool_call": [
            {"session_id": "ses_evil", "attempt_id": "att_evil", "tool_call_id": "tcl_1",
             "tool": every, "status": every, "error": every, "output_bytes": 1,
             "started_at": START.isoformat(), "duration_s": 1.0}
        ],
        "report_model_call": [
            {"session_id": "ses_evil", "attempt_id": "att_evil", "step": 1, "try": 1,
             "purpose": every, "provider": every, "request_model": every, "error_kind": every,
             "error": every, "started_at": START.isoformat(), "duration_s": 1.0,
             "input_tokens": 10, "cost_usd": Decimal(1), "cost_source": "config"}
        ],
    }  # fmt: skip


def family() -> Tables:
    """A session that had a child look something up with another model."""
    asked = {"type": "subtask", "child_session": "ses_child", "agent": "explore",
             "description": "look it up"}  # fmt: skip
    said = {"type": "text", "text": "Line 5 it is."}
    tables = {
        **report_rows.passing(),
        **_said("core", [("assistant", [asked])]),
        "report_child": [
            {"run_id": report_rows.RUN, "session_id": "ses_child", "parent_id": "ses_core",
             "depth": 1, "item_key": "fix-lint", "recipe": "fix-lint", "agent": "explore",
             "model": "openai/gpt-5", "status": "passed"}
        ],
        "report_model_call": [
            {"session_id": "ses_child", "attempt_id": "att_child", "step": 1, "try": 1,
             "purpose": "step", "provider": "openai", "request_model": "gpt-5",
             "started_at": START.isoformat(), "duration_s": 1.0, "input_tokens": 10,
             "cost_usd": Decimal("0.01"), "cost_source": "config"}
        ],
    }  # fmt: skip
    for table, rows in _said("child", [("assistant", [said])]).items():
        tables[table] = [*tables[table], *rows]
    return tables


def many(sessions: int, parts: int) -> Tables:
    """`parts` parts in the first session, and some in each of the others."""
    names = [f"p{number:04}" for number in range(sessions)]
    tables: Tables = {
        "report_run": [report_rows.run(exit_code=0)],
        "report_session": [report_rows.session(name) for name in names],
    }
    said = "The function splits the amount and hands the rest out cent by cent. " * 4
    for number, name in enumerate(names):
        bodies = [_body(index, said) for index in range(parts if number == 0 else 4)]
        turns = [("assistant", bodies[at : at + 5]) for at in range(0, len(bodies), 5)]
        for table, rows in _said(name, turns).items():
            tables.setdefault(table, []).extend(rows)
    return tables


def _body(index: int, said: str) -> dict[str, Any]:
    if index % 5 == 0:
        return {"type": "text", "text": f"Step {index}. {said}"}
    state = {
        "type": "completed",
        "title": f"pytest -q tests/test_{index}.py",
        "input": {"command": f"pytest -q tests/test_{index}.py"},
        "output": f"{said}\nneedle-{index} passed",
        "duration_ms": 900,
    }
    return {"type": "tool_use", "name": "bash", "state": state}


def _said(name: str, turns: list[tuple[str, list[dict[str, Any]]]]) -> Tables:
    messages = [
        {"session_id": f"ses_{name}", "attempt_id": f"att_{name}", "attempt_n": 1,
         "message_id": f"msg_{name}_{number:05}", "role": role,
         "created_at": (START + timedelta(seconds=number)).isoformat()}
        for number, (role, _) in enumerate(turns)
    ]  # fmt: skip
    parts = [
        {"session_id": f"ses_{name}", "message_id": f"msg_{name}_{number:05}",
         "part_id": f"prt_{name}_{number:05}_{idx:03}", "idx": idx, "type": body["type"],
         "body": body}
        for number, (_, bodies) in enumerate(turns)
        for idx, body in enumerate(bodies)
    ]  # fmt: skip
    return {"report_message": messages, "report_part": parts}
