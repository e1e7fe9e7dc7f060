"""One session from its first prompt to its last word, to read (Markdown) or to parse (JSON).

Everything said in the session stands in fenced code, since nobody vouches for it; the words
between are ours. Reasoning is folded, tool calls stand with what went in and what came out, each
step ends with what it used.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from itertools import groupby

from attrs import asdict

from harness_batch_reports import figures
from harness_batch_reports.hostile import code, fenced, one_line
from harness_batch_reports.markdown_overview import mark, why
from harness_batch_reports.reasons import meaning
from harness_batch_reports.records import (
    ChildSession,
    JsonObject,
    Message,
    ModelCall,
    Part,
    Session,
    SessionTranscript,
)
from harness_batch_reports.verdict import outcome, session_cost

TEXT_LIMIT = 200_000
"""Characters of one part; whole tool outputs lie in the attempt's `outputs/`."""


def markdown(transcript: SessionTranscript, only: int | None = None) -> str:
    """The transcript as Markdown, of all attempts or of attempt number `only`."""
    blocks = [*_head(transcript)]
    told = (m for m in transcript.messages if only is None or m.attempt_n == only)
    for attempt, messages in groupby(told, key=lambda m: (m.attempt_n, m.attempt_id)):
        blocks.append(f"## Attempt {attempt[0]}")
        blocks.extend(_outcome(transcript.session, attempt[1]))
        for message in messages:
            blocks.extend(_message(message))
        failed = [c for c in transcript.model_calls if c.attempt_id == attempt[1] and _failed(c)]
        blocks.extend(_requests(failed))
    return "\n\n".join(block for block in blocks if block) + "\n"


def as_json(transcript: SessionTranscript) -> JsonObject:
    """The same as one JSON object: session, messages with parts, model calls, tool calls."""
    document: JsonObject = asdict(transcript, value_serializer=_plain)
    for call in document["model_calls"]:
        call["try"] = call.pop("try_")
    return document


def _plain(_owner: object, _field: object, value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case Decimal():
            return figures.decimal_text(value)
        case tuple():
            return list(value)
        case _:
            return value


def _head(transcript: SessionTranscript) -> Iterator[str]:
    session = transcript.session
    if transcript.child is not None:
        yield from _child(transcript.child)
        return
    if session is None:
        yield f"# Session {code(transcript.session_id)}"
        return
    yield f"# {mark(session)} {code(session.item_key)}: {outcome(session)}"
    yield from _facts(session)


def _child(child: ChildSession) -> Iterator[str]:
    yield f"# {code(child.item_key)}: child session, {code(child.status, 40)}"
    reason = ": ".join(code(word, 600) for word in (child.reason, child.detail) if word)
    if reason:
        yield reason
    facts = [
        f"child of {code(child.parent_id, 100)} (depth {child.depth})",
        f"recipe {code(child.recipe, 100)}",
        f"model {code(child.model, 100)}, agent {code(child.agent, 60)}",
        f"session {code(child.session_id, 100)}",
    ]
    yield " · ".join(facts)


def _facts(session: Session) -> Iterator[str]:
    if reason := why(session, 600):
        yield reason
    cached = figures.share(session.cache_read_tokens, session.input_tokens)
    tokens = f"{figures.tokens(session.input_tokens)} tokens in ({cached} from cache)"
    facts = [
        session_cost(session),
        f"{tokens}, {figures.tokens(session.output_tokens)} out",
        figures.duration(session.wall_s),
        f"model {code(session.model, 100)}, agent {code(session.agent, 60)}",
        f"session {code(session.session_id, 100)}",
    ]
    yield " · ".join(facts)


def _outcome(session: Session | None, attempt_id: str) -> Iterator[str]:
    """How an earlier attempt ended; how the last one did stands at the top."""
    for attempt in session.earlier if session else ():
        if attempt.attempt_id == attempt_id and attempt.status is not None:
            yield (
                f"{attempt.status.capitalize()}"
                + (f": {code(meaning(attempt).text, 200)}" if attempt.reason else "")
                + (f": {code(attempt.detail, 600)}" if attempt.detail else "")
            )


def _message(message: Message) -> Iterator[str]:
    if message.role == "user":
        yield "### User"
    elif message.role == "assistant":
        yield "### Assistant" + (f" {code(message.model, 100)}" if message.model else "")
    else:
        yield f"### {code(message.role, 40)}"
    for part in message.parts:
        yield from _part(part)
    if message.error:
        yield f"**Error:** {code(message.error, 600)}"


def _part(part: Part) -> Iterator[str]:
    body = part.body
    match part.type:
        case "text":
            if body.get("synthetic"):
                yield "A note of the runner:"
            yield _fence(body.get("text"))
        case "reasoning":
            yield _folded("Reasoning", _reasoning(body))
        case "tool_use" | "tool":
            yield from _tool(body)
        case "step_finish":
            yield _usage(body)
        case "subtask":
            child = code(_text(body.get("child_session")), 100)
            agent = code(_text(body.get("agent")), 60)
            said = code(_text(body.get("description")))
            yield f"**Child session** {child}, agent {agent}: {said}"
        case "compaction":
            yield _folded("What came before was summarised", _fence(body.get("summary")))
        case "step_start":
            return
        case other:
            yield f"Part {code(other, 40)}:\n\n{_fence(body)}"


def _reasoning(body: JsonObject) -> str:
    if body.get("redacted"):
        return "The provider keeps it to itself."
    return _fence(body.get("text"))


def _tool(body: JsonObject) -> Iterator[str]:
    state = body.get("state")
    state = state if isinstance(state, dict) else {}
    fate = _text(state.get("type")) or "pending"
    title = one_line(_text(state.get("title")), 120)
    took = state.get("duration_ms")
    facts = [_FATES.get(fate) or code(fate, 40)]
    if isinstance(took, int):
        facts.append(figures.duration(took / 1_000))
    head = f"**Tool** {code(_text(body.get('name')), 80)}"
    yield head + (f" {code(title, 120)}" if title else "") + f" ({', '.join(facts)})"
    given = state.get("input", state.get("partial_input"))
    if given:
        yield from _input(given)
    if state.get("output"):
        yield f"Output:\n\n{_fence(state['output'])}"
    if state.get("error"):
        yield f"Error:\n\n{_fence(state['error'])}"


_TEXTS = frozenset({"command", "content", "old_string", "new_string"})
_FATES = {
    "pending": "never started",
    "running": "never ended",
    "completed": "completed",
    "failed": "refused or failed",
}


def _input(given: object) -> Iterator[str]:
    """Arguments as JSON, but commands, file contents and texts of several lines as they are."""
    if not isinstance(given, dict):
        yield _fence(given, "json")
        return
    long = {k: v for k, v in given.items() if isinstance(v, str) and (k in _TEXTS or "\n" in v)}
    if short := {key: value for key, value in given.items() if key not in long}:
        yield _fence(short, "json")
    for name, text in long.items():
        label = "" if name == "command" else f"{code(name, 60)}:\n\n"
        yield label + _fence(text, "sh" if name == "command" else "text")


def _usage(body: JsonObject) -> str:
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens, cached, out = (_number(usage.get(name)) for name in ("input", "cache_read", "output"))
    return (
        f"*{figures.tokens(tokens)} tokens in ({figures.share(cached, tokens)} from cache), "
        f"{figures.tokens(out)} out, {figures.cost_text(body.get('cost_usd'))}, "
        f"ended with* {code(_text(body.get('reason')), 40)}"
    )


def _failed(call: ModelCall) -> bool:
    return call.error_kind is not None or call.duration_s is None


def _requests(calls: list[ModelCall]) -> Iterator[str]:
    if not calls:
        return
    lines = [
        f"- step {call.step}, try {call.try_}: {code(_fault(call), 60)}"
        + (f", HTTP {call.http_status}" if call.http_status is not None else "")
        + (f": {code(call.error, 400)}" if call.error else "")
        for call in calls
    ]
    yield "Requests that failed:\n\n" + "\n".join(lines)


def _fault(call: ModelCall) -> str:
    return call.error_kind or "never answered"


def _folded(head: str, body: str) -> str:
    return f"<details><summary>{head}</summary>\n\n{body}\n\n</details>"


def _fence(value: object, language: str = "text") -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return fenced(text, TEXT_LIMIT, language)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
