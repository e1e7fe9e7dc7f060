"""Rows of the `report_*` views: realistic runs, and rows to build others from."""

from decimal import Decimal
from typing import Any

from report_views import COLUMNS

RUN = "run_01K9Z3NDEKTSV4RRFFQ69G5FAV"


def run(**changes: Any) -> dict[str, Any]:
    """A run that ended with exit code 1."""
    return {
        "run_id": RUN,
        "version": "0.1.0",
        "argv": ["run", "recipes/fix-lint.yaml"],
        "ci_provider": "github",
        "ci_url": "https://ci.example/run/7",
        "trigger": "schedule",
        "started_at": "2026-03-01T04:00:00+00:00",
        "finished_at": "2026-03-01T04:12:08+00:00",
        "exit_code": 1,
        "budget_usd": Decimal(5),
        "sandbox": {"launcher": "plain"},
    } | changes


def session(name: str, **changes: Any) -> dict[str, Any]:
    """A session of recipe `fix-lint` that passed with a patch of one file."""
    return {
        "run_id": RUN,
        "session_id": f"ses_{name}",
        "item_key": f"fix-lint/package={name}",
        "item_digest": f"d1{name}",
        "recipe": "fix-lint",
        "recipe_file": "/home/ci/app/recipes/fix-lint.yaml",
        "folder": f"fix-lint_package={name}",
        "params": {"style": "google"},
        "matrix": {"package": name},
        "agent": "build",
        "model": "anthropic/claude-sonnet-5",
        "repo": "/home/ci/app",
        "ref": "HEAD",
        "base_sha": "9f2c1e0d",
        "status": "passed",
        "flaky": False,
        "attempts": 1,
        "started_at": "2026-03-01T04:00:01+00:00",
        "finished_at": "2026-03-01T04:03:06+00:00",
        "wall_s": 185.25,
        "working_s": 180.0,
        "steps": 9,
        "tool_calls": 14,
        "input_tokens": 182_400,
        "cache_read_tokens": 151_000,
        "output_tokens": 4_120,
        "cost_usd": Decimal("0.1874"),
        "unpriced_calls": 0,
        "model_calls": 9,
        "answer": "Fixed the two lint errors and ran the tests.",
        "denials": 0,
        "attempt_id": f"att_{name}",
        "attempt_n": 1,
        "patch_files": 1,
        "patch_added": 3,
        "patch_removed": 2,
        "patch_bytes": 812,
        "patch_sha256": "ab" * 32,
        "patch_id": "cd" * 20,
        "patch_applies": True,
        "patch_paths": [f"src/{name}/main.py"],
    } | changes


NO_PATCH: dict[str, Any] = dict.fromkeys(
    (name for name in COLUMNS["report_session"] if name.startswith("patch_")), None
)
NEVER_RAN: dict[str, Any] = {
    **NO_PATCH,
    **dict.fromkeys(
        ("steps", "tool_calls", "input_tokens", "output_tokens", "cache_read_tokens"), 0
    ),
    **dict.fromkeys(
        ("started_at", "finished_at", "wall_s", "working_s", "attempt_id", "attempt_n")
    ),
    "attempts": 0,
    "answer": None,
    "cost_usd": None,
    "model_calls": 0,
}


def check(name: str, of: str, **changes: Any) -> dict[str, Any]:
    """A check of session `of` that passed."""
    return {
        "run_id": RUN,
        "session_id": f"ses_{of}",
        "item_key": f"fix-lint/package={of}",
        "attempt_id": f"att_{of}",
        "name": name,
        "kind": "check",
        "passed": True,
        "exit_code": 0,
        "duration_s": 12.5,
    } | changes


def attempt(of: str, n: int, **changes: Any) -> dict[str, Any]:
    """Attempt n of session `of`, which passed."""
    return {
        "session_id": f"ses_{of}",
        "attempt_id": f"att_{of}_{n}",
        "n": n,
        "status": "passed",
        "wall_s": 60.5,
        "started_at": "2026-03-01T04:00:01+00:00",
        "finished_at": "2026-03-01T04:01:01+00:00",
    } | changes


def denial(of: str, permission: str, pattern: str, **changes: Any) -> dict[str, Any]:
    """A call of session `of` that the default rules refused once."""
    return {
        "run_id": RUN,
        "session_id": f"ses_{of}",
        "item_key": f"fix-lint/package={of}",
        "tool": permission,
        "permission": permission,
        "pattern": pattern,
        "source": "none",
        "times": 1,
    } | changes


def nightly() -> dict[str, list[dict[str, Any]]]:
    """A night with every kind of ending in it."""
    return {
        "report_run": [run()],
        "report_session": _nightly_sessions(),
        "report_attempt": [
            attempt("cli", 1, status="failed", reason="check:tests", error_kind="task",
                    detail="timed out after 600 s"),
            attempt("cli", 2, status="failed", reason="check:tests", error_kind="task"),
            attempt("plugins", 1, status="errored", reason="provider_unavailable",
                    error_kind="provider", detail="HTTP 529: overloaded"),
            attempt("plugins", 2),
        ],
        "report_check": [
            check("tests", "core"),
            check("lint", "core", duration_s=0.75),
            check(
                "tests",
                "cli",
                passed=False,
                exit_code=1,
                reason="exit code 1",
                output="FAILED tests/test_cli.py::test_help - AssertionError: 'usage' != 'Usage'\n"
                "1 failed, 41 passed in 8.02s\n",
            ),
            check("patch", "cli", kind="expect", exit_code=None, duration_s=0.0),
        ],
        "report_denial": [
            denial("cli", "bash", "git push origin HEAD", times=2),
            denial("cli", "webfetch", "https://docs.python.org/3/library/argparse.html"),
            denial("docs", "edit", ".github/workflows/ci.yml", rule="edit: .github/**: deny",
                   source="recipe:recipes/fix-lint.yaml:14"),
        ],
        "report_notice": [
            {
                "run_id": RUN,
                "level": "warning",
                "text": "no sandbox on this host: tools run with this user's rights",
                "ts": "2026-03-01T04:00:00+00:00",
            }
        ],
    }  # fmt: skip


def _nightly_sessions() -> list[dict[str, Any]]:
    auth = "anthropic answered 401: invalid x-api-key"
    return [
        session("api", status="errored", reason="provider_auth", error_kind="provider",
                detail=auth, answer=None, steps=0, tool_calls=0, input_tokens=0, output_tokens=0,
                cache_read_tokens=0, cost_usd=None, model_calls=1, unpriced_calls=0, wall_s=0.8,
                **NO_PATCH),
        session("cli", status="failed", reason="check:tests", detail="exit code 1", denials=3,
                error_kind="task", cost_usd=Decimal("0.4211"), steps=23, patch_files=2,
                patch_paths=["src/cli/main.py", "src/cli/help.py"], patch_added=40,
                patch_removed=12, attempts=2, attempt_n=2),
        session("core"),
        session("docs", status="failed", reason="max_cost", error_kind="task", denials=1,
                detail="the session's limit of $0.50", cost_usd=Decimal("0.4975"),
                unpriced_calls=2, answer=None),
        session("legacy", **NEVER_RAN | {"status": "skipped", "reason": "max_cost",
                "detail": "of $5.00 all were spent"}),
        session("plugins", flaky=True, attempts=2, attempt_n=2, cost_usd=Decimal("0.09")),
        session("web", **NEVER_RAN | {"status": "cached", "answer": "Nothing to do."}),
        session("zeta", status="cancelled", reason="cancelled", detail="SIGTERM", answer=None),
    ]  # fmt: skip


def passing() -> dict[str, list[dict[str, Any]]]:
    """The smallest run: one session that passed."""
    one = session("core") | {"item_key": "fix-lint", "matrix": {}, "folder": "fix-lint"}
    return {
        "report_run": [run(exit_code=0, ci_provider=None, ci_url=None, trigger=None)],
        "report_session": [one],
        "report_check": [check("tests", "core", item_key="fix-lint")],
    }


def talk() -> dict[str, list[dict[str, Any]]]:
    """`passing`, with all that was said in it: a failed try, reasoning, three tool calls."""
    usage = {"input": 12_400, "cache_read": 11_000, "output": 310}
    finish = {"type": "step_finish", "usage": usage, "cost_usd": "0.0132", "reason": "tool_calls"}
    command = {"command": "pytest -q", "timeout": 60}
    edit = {
        "file_path": "src/core/main.py",
        "old_string": "import os\nx = 1",
        "new_string": "x = 1",
    }
    bodies: dict[str, list[dict[str, Any]]] = {
        "msg_1": [{"type": "text", "text": "Fix what the linter says.", "synthetic": False}],
        "msg_2": [
            {"type": "step_start", "step": 1},
            {"type": "reasoning", "text": "First see what fails.", "signature": "c2ln"},
            {"type": "text", "text": "I will run the tests.", "synthetic": False},
            _called("bash", {"type": "completed", "input": command, "title": "pytest -q",
                             "output": "1 failed\nexit code 1", "duration_ms": 2_310}),
            _called("bash", {"type": "failed", "input": {"command": "git push"},
                             "error": "denied: no rule allows bash: git push"}),
            _called("edit", {"type": "completed", "input": edit, "title": "src/core/main.py",
                             "output": "-import os", "duration_ms": 12}),
            finish,
        ],
        "msg_3": [
            {"type": "text", "text": "Done: removed the unused import.", "synthetic": False},
            finish | {"reason": "stop", "cost_usd": None},
        ],
    }  # fmt: skip
    return passing() | {
        "report_message": [
            {
                "session_id": "ses_core",
                "attempt_id": "att_core",
                "attempt_n": 1,
                "message_id": message,
                "role": "user" if message == "msg_1" else "assistant",
                "model": None if message == "msg_1" else "anthropic/claude-sonnet-5",
                "created_at": f"2026-03-01T04:00:0{message[-1]}+00:00",
            }
            for message in bodies
        ],
        "report_part": [
            {
                "session_id": "ses_core",
                "message_id": message,
                "part_id": f"prt_{message}_{idx}",
                "idx": idx,
                "type": body["type"],
                "body": body,
            }
            for message, parts in bodies.items()
            for idx, body in enumerate(parts)
        ],
        "report_model_call": [_call(1, error_kind="unavailable", http_status=529), _call(2)],
        "report_tool_call": [
            {
                "session_id": "ses_core",
                "attempt_id": "att_core",
                "tool_call_id": "tcl_1",
                "tool": "bash",
                "status": "completed",
                "exit_code": 1,
                "started_at": "2026-03-01T04:00:03+00:00",
                "duration_s": 2.31,
                "output_bytes": 20,
            }
        ],
    }


def _called(name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "call_id": "call_1", "name": name, "state": state}


def _call(try_: int, **changes: Any) -> dict[str, Any]:
    return {
        "session_id": "ses_core",
        "attempt_id": "att_core",
        "step": 1,
        "try": try_,
        "purpose": "step",
        "provider": "anthropic",
        "request_model": "claude-sonnet-5",
        "started_at": f"2026-03-01T04:00:0{try_}+00:00",
        "duration_s": 0.4,
        "cost_source": "config",
        "error": "overloaded" if changes else None,
    } | changes
