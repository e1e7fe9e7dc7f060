"""Outputs of a job's step, in the form of GITHUB_OUTPUT: no value can become a second output. Pure.

Source: "Workflow commands for GitHub Actions", multiline strings.
"""

import json
import secrets
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

LONGEST: Final = 256 << 10
"""Characters of one output; the sum of a job's may be 1 MiB."""


def as_file(outputs: Mapping[str, str]) -> str:
    """The lines to append to the file; each value stands between delimiters of its own."""
    return "".join(_one(name, value) for name, value in outputs.items())


def _one(name: str, value: str) -> str:
    delimiter = f"end-{secrets.token_hex(16)}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def outputs_of(result: Mapping[str, Any], folder: str) -> dict[str, str]:
    """What the action promises, out of a run's result.json; `folder` is the run's."""
    totals = result["totals"]
    sessions = result["sessions"]
    return {
        "conclusion": result["conclusion"],
        "exit-code": _text(result["exit_code"]),
        "run-id": result["run_id"],
        "passed": _text(totals["passed"]),
        "failed": _text(totals["failed"]),
        "errored": _text(totals["errored"] + totals["cancelled"]),
        "cost-usd": _text(totals["cost_usd"]),
        "input-tokens": _text(totals["input_tokens"]),
        "cached-input-tokens": _text(totals["cache_read_tokens"]),
        "output-tokens": _text(totals["output_tokens"]),
        "denials": _text(totals["denials"]),
        "patch-path": _patch_path(sessions, folder),
        "junit-path": f"{folder}/junit.xml",
        "summary-path": f"{folder}/summary.md",
        "report-path": f"{folder}/report.html",
        "budget-left": _left(result["budget_usd"], totals["cost_usd"]),
        "structured-output": _structured(sessions),
    }


def nothing_ran(code: int) -> dict[str, str]:
    """The outputs of a step that ended before there was a run."""
    conclusion = "invalid" if code == 2 else "errored"
    return {"conclusion": conclusion, "exit-code": str(code)}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _patch_path(sessions: list[dict[str, Any]], folder: str) -> str:
    """The one patch there is, else the folder in which they all lie; empty without any."""
    changed = [session for session in sessions if session["patch"] and session["patch"]["files"]]
    paths = [file for session in changed for file in session["files"] if _is_patch(file)]
    if not changed:
        return ""
    return f"{folder}/{paths[-1]}" if len(changed) == 1 and paths else f"{folder}/items"


def _is_patch(path: str) -> bool:
    return path.endswith("/change.patch")


def _left(budget: str | None, spent: str | None) -> str:
    if budget is None:
        return ""
    return str(max(Decimal(budget) - Decimal(spent or 0), Decimal(0)))


def _structured(sessions: list[dict[str, Any]]) -> str:
    """The answer of the only session as JSON, of several an object by item; empty when too long."""
    answers = {s["item_key"]: s["answer_json"] for s in sessions if s["answer_json"] is not None}
    if not answers:
        return ""
    value = next(iter(answers.values())) if len(sessions) == 1 else answers
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= LONGEST else ""
