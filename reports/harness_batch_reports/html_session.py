"""One session as the JSON that the page's script opens: outcome, checks, patch, tools, transcript.

The parts of a page share one room: who comes first takes what it needs, and what does not fit is
said to be left out. Sessions come worst first, so what people look for is there.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime

from attrs import define, frozen

from harness_batch_reports import figures
from harness_batch_reports.answers import answer_text
from harness_batch_reports.hostile import excerpt, one_line
from harness_batch_reports.html_blocks import PART_LIMIT, blocks, text
from harness_batch_reports.markdown_overview import change
from harness_batch_reports.reasons import check_meaning, kind, meaning
from harness_batch_reports.records import (
    Check,
    JsonObject,
    ModelCall,
    Session,
    SessionTranscript,
    ToolCall,
)
from harness_batch_reports.verdict import outcome, session_cost

PAGE_LIMIT = 24_000_000
"""Characters of all transcripts of a page: what browsers open at once."""
PATCH_LIMIT = 200_000
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


@define
class Room:
    """What is left of a page for transcripts, in characters of JSON."""

    left: int = PAGE_LIMIT

    def takes(self, document: JsonObject) -> bool:
        """Whether it still fits; what fits is taken off."""
        size = len(json.dumps(document, ensure_ascii=False))
        if size > self.left:
            return False
        self.left -= size
        return True


@frozen(kw_only=True)
class Told:
    """A session with all that the page has of it."""

    transcript: SessionTranscript
    patch: str | None = None
    """The text of `change.patch`."""


def as_script(document: JsonObject) -> str:
    """JSON for the inside of a `<script type="application/json">`: no markup, no odd line end."""
    plain = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)


def document(told: Told, room: Room) -> JsonObject:
    """What the script needs to open the session."""
    transcript = told.transcript
    session = transcript.session
    start = _start(transcript)
    return {
        **(_outcome(session) if session is not None else _child(transcript)),
        "patch": _patch(told),
        "tools": list(_tools(transcript, start)),
        "requests": list(_requests(transcript.model_calls, start)),
        "blocks": list(_blocks(transcript, room)),
    }


def why(session: Session, limit: int = 400) -> str:
    """The reason in plain words."""
    if kind(session) == "passed":
        return "passed after a failed try" if session.flaky else ""
    words = one_line(meaning(session).text, 200)
    said = one_line(session.detail or "", limit)
    return f"{words}: {said}" if said and said.lower() != words.lower() else words


def _outcome(session: Session) -> JsonObject:
    cached = figures.share(session.cache_read_tokens, session.input_tokens)
    facts = {
        "Cost": session_cost(session),
        "Tokens in": f"{figures.tokens(session.input_tokens)} ({cached} from cache)",
        "Tokens out": figures.tokens(session.output_tokens),
        "Time": figures.duration(session.wall_s),
        "Steps": str(session.steps),
        "Tool calls": str(session.tool_calls),
        "Attempts": str(session.attempts),
        "Model": one_line(session.model, 100),
        "Agent": one_line(session.agent, 60),
        "Base": one_line(session.base_sha or "-", 12),
        "Session": one_line(session.session_id, 100),
    }
    return {
        "id": session.session_id,
        "item": one_line(session.item_key, 200),
        "status": outcome(session),
        "why": why(session),
        "facts": [[name, value] for name, value in facts.items()],
        "checks": [_check(check) for check in session.checks],
        "tried": list(_tried(session)),
        "answer": excerpt(answer_text(session.answer), PART_LIMIT) if session.answer else "",
        "files": [one_line(file, 300) for file in session.files],
    }


def _child(transcript: SessionTranscript) -> JsonObject:
    child = transcript.child
    facts = {
        "Model": one_line(child.model, 100) if child else "-",
        "Agent": one_line(child.agent, 60) if child else "-",
        "Depth": str(child.depth) if child else "-",
        "Parent": one_line(child.parent_id, 100) if child else "-",
        "Session": one_line(transcript.session_id, 100),
    }
    said = [one_line(word, 400) for word in (child.reason, child.detail) if word] if child else []
    return {
        "id": transcript.session_id,
        "item": one_line(child.item_key, 200) if child else transcript.session_id,
        "status": child.status if child else "unfinished",
        "why": ": ".join(said),
        "parent": child.parent_id if child else "",
        "facts": [[name, value] for name, value in facts.items()],
        "checks": [],
        "tried": [],
        "answer": "",
        "files": [],
    }


def _check(check: Check) -> JsonObject:
    said = check.reason or (f"exit code {check.exit_code}" if check.exit_code else "")
    return {
        "name": one_line(check.name, 100),
        "kind": one_line(check.kind, 20),
        "ok": check.passed,
        "why": "" if check.passed else one_line(said or check_meaning(check).text, 400),
        "took": figures.duration(check.duration_s),
        "out": excerpt(check.output or "", PART_LIMIT),
    }


def _tried(session: Session) -> Iterator[str]:
    for attempt in session.earlier:
        words = "passed" if attempt.status == "passed" else one_line(meaning(attempt).text, 200)
        said = f": {one_line(attempt.detail, 300)}" if attempt.detail else ""
        took = f" ({figures.duration(attempt.wall_s)})" if attempt.wall_s is not None else ""
        yield f"Attempt {attempt.n}: {words}{said}{took}"


def _patch(told: Told) -> JsonObject | None:
    session = told.transcript.session
    if session is None or session.patch is None or not session.patch.files:
        return None
    return {
        "title": change(session),
        "why": one_line(session.patch.refused or "", 300),
        "paths": [one_line(path, 300) for path in session.patch.paths[:200]],
        "t": excerpt(told.patch, PATCH_LIMIT) if told.patch else "",
    }


def _start(transcript: SessionTranscript) -> datetime | None:
    calls: tuple[ModelCall | ToolCall, ...] = (*transcript.model_calls, *transcript.tool_calls)
    return min((call.started_at for call in calls if call.started_at), default=None)


def _since(at: datetime | None, start: datetime | None) -> float | None:
    return round((at - start).total_seconds(), 3) if at and start else None


def _tools(transcript: SessionTranscript, start: datetime | None) -> Iterator[JsonObject]:
    for call in transcript.tool_calls:
        yield _tool(call, start)


def _tool(call: ToolCall, start: datetime | None) -> JsonObject:
    return {
        "tool": one_line(call.tool, 60),
        "at": _since(call.started_at, start),
        "s": round(call.duration_s or 0, 3),
        "status": one_line(call.status or "never ended", 40),
        "why": one_line(call.error or "", 200),
    }


def _requests(calls: tuple[ModelCall, ...], start: datetime | None) -> Iterator[JsonObject]:
    for call in calls:
        failed = call.error_kind or ("never answered" if call.duration_s is None else "")
        yield {
            "tool": one_line(f"model, {call.purpose}" if call.purpose != "step" else "model", 60),
            "at": _since(call.started_at, start),
            "s": round(call.duration_s or 0, 3),
            "status": one_line(failed or "completed", 40),
            "why": text(call.error, 200),
        }


def _blocks(transcript: SessionTranscript, room: Room) -> Iterator[JsonObject]:
    attempt = None
    left_out = 0
    for message in transcript.messages:
        if left_out:
            left_out += 1
            continue
        if message.attempt_n != attempt:
            attempt = message.attempt_n
            yield {"k": "attempt", "t": f"Attempt {attempt}"}
        told = list(blocks(message))
        if room.takes({"blocks": told}):
            yield from told
        else:
            left_out = 1
    if left_out:
        words = figures.count(left_out, "message")
        yield {
            "k": "cut",
            "t": f"{words} more: this page is full, the attempt's transcript.md is not",
        }
