"""A transcript as blocks that the page's script shows: every word decided here, none in the page.

A block is a small JSON object whose `k` says what it is; its texts are plain text, cleaned and
bounded, and the script puts them on the page as text and as nothing else.
"""

import json
import re
from collections.abc import Iterator

from harness_batch_reports import figures
from harness_batch_reports.hostile import excerpt, one_line
from harness_batch_reports.records import JsonObject, Message, Part

PART_LIMIT = 16_000
"""Characters of one text; the attempt's `transcript.md` and `outputs/` have more."""

_FATES = {
    "pending": "never started",
    "running": "never ended",
    "completed": "completed",
    "failed": "refused or failed",
}
_HUNK = re.compile(r"^@@ -\d", re.MULTILINE)
_DIFF_HEAD = re.compile(r"^(diff --git |--- )", re.MULTILINE)
_LONG = frozenset({"command", "content", "old_string", "new_string"})


def blocks(message: Message) -> Iterator[JsonObject]:
    """The blocks of one message, its head first."""
    yield _head(message)
    for part in message.parts:
        yield from _part(part)
    if message.error:
        yield {"k": "error", "t": text(message.error)}


def text(value: object, limit: int = PART_LIMIT) -> str:
    """Whatever a part holds, as text to read."""
    if not isinstance(value, str):
        value = "" if value is None else json.dumps(value, indent=2, ensure_ascii=False)
    return excerpt(value, limit)


def is_diff(said: str) -> bool:
    """Whether the text is a unified diff, to be coloured as one."""
    return bool(_HUNK.search(said) and _DIFF_HEAD.search(said))


def _head(message: Message) -> JsonObject:
    who = {"user": "User", "assistant": "Assistant"}.get(message.role, message.role)
    about = [one_line(word, 100) for word in (message.model, message.agent) if word]
    at = message.created_at
    return {
        "k": "head",
        "who": one_line(who, 40),
        "about": " · ".join(about),
        "at": f"{at:%H:%M:%S}" if at is not None else "",
    }


def _part(part: Part) -> Iterator[JsonObject]:
    body = part.body
    match part.type:
        case "text":
            title = "A note of the runner" if body.get("synthetic") else ""
            yield {"k": "text", "title": title, "t": text(body.get("text"))}
        case "reasoning":
            said = "The provider keeps it to itself." if body.get("redacted") else body.get("text")
            yield {"k": "think", "title": "Reasoning", "t": text(said)}
        case "tool_use" | "tool":
            yield _tool(body)
        case "step_finish":
            yield {"k": "usage", "t": _usage(body)}
        case "subtask":
            yield {
                "k": "child",
                "title": one_line(_word(body.get("agent")), 60),
                "id": one_line(_word(body.get("child_session")), 100),
                "t": text(body.get("description")),
            }
        case "compaction":
            title = "What came before was summarised"
            yield {"k": "think", "title": title, "t": text(body.get("summary"))}
        case "step_start":
            return
        case other:
            yield {"k": "think", "title": f"Part {one_line(other, 40)}", "t": text(body)}


def _tool(body: JsonObject) -> JsonObject:
    state = body.get("state")
    state = state if isinstance(state, dict) else {}
    fate = _word(state.get("type")) or "pending"
    took = state.get("duration_ms")
    facts = [_FATES.get(fate) or one_line(fate, 40)]
    if isinstance(took, int):
        facts.append(figures.duration(took / 1_000))
    given = state.get("input", state.get("partial_input"))
    return {
        "k": "tool",
        "title": one_line(_word(body.get("name")), 80),
        "about": one_line(_word(state.get("title")) or _gist(given), 160),
        "ok": fate == "completed",
        "fate": ", ".join(facts),
        "in": list(_inputs(given)),
        "out": [_shown(name, state[key]) for key, name in _ENDS if state.get(key)],
    }


_ENDS = (("output", "Output"), ("error", "Error"))


def _gist(given: object) -> str:
    """The one argument that tells most, for a call that has no title yet."""
    if not isinstance(given, dict):
        return ""
    told = (given.get(name) for name in ("command", "file_path", "pattern", "url", "description"))
    return next((word for word in told if isinstance(word, str)), "")


def _inputs(given: object) -> Iterator[JsonObject]:
    """Arguments as JSON, but commands, file contents and texts of several lines as they are."""
    if not isinstance(given, dict):
        if given:
            yield _shown("Input", given)
        return
    if {"old_string", "new_string"} <= given.keys():
        yield _replaced(given)
        given = {key: given[key] for key in given if key not in {"old_string", "new_string"}}
    long = {k: v for k, v in given.items() if isinstance(v, str) and (k in _LONG or "\n" in v)}
    for name, said in long.items():
        yield _shown(one_line(name, 60), said)
    if short := {key: value for key, value in given.items() if key not in long}:
        yield _shown("Input", short)


def _replaced(given: JsonObject) -> JsonObject:
    """An edit: the old lines struck out, the new ones added."""
    sides = (("-", given["old_string"]), ("+", given["new_string"]))
    lines = [
        f"{sign}{line}" for sign, side in sides for line in text(side).split("\n") if text(side)
    ]
    return {"name": "Replaced", "t": "\n".join(lines), "diff": True}


def _shown(name: str, value: object) -> JsonObject:
    said = text(value)
    return {"name": name, "t": said, "diff": is_diff(said)}


def _usage(body: JsonObject) -> str:
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens, cached, out = (_number(usage.get(name)) for name in ("input", "cache_read", "output"))
    return (
        f"{figures.tokens(tokens)} tokens in ({figures.share(cached, tokens)} from cache), "
        f"{figures.tokens(out)} out, {figures.cost_text(body.get('cost_usd'))}, "
        f"ended with {one_line(_word(body.get('reason')), 40)}"
    )


def _word(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
