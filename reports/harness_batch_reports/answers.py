"""A session's answer as text to read: JSON is laid out, prose is left as it is."""

import json

from harness_batch_reports.records import JsonObject


def answer_json(answer: str | None) -> JsonObject | list[object] | None:
    """The answer when it is a JSON object or list, as recipes with a schema ask for."""
    try:
        value = json.loads(answer or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def answer_text(answer: str) -> str:
    """The answer to read; JSON is indented."""
    value = answer_json(answer)
    return answer if value is None else json.dumps(value, indent=2, ensure_ascii=False)


def language(answer: str) -> str:
    """Info string of a Markdown fence around it."""
    return "text" if answer_json(answer) is None else "json"
