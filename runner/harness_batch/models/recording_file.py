"""The door of recordings: JSON in, records out, all faults at once; and records as such a file.

Texts of several lines stand as lists of lines, so that a committed recording can be reviewed.
"""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from harness_batch.config.record import ModelInfo
from harness_batch.errors import Fault, FaultyInput
from harness_batch.messages import JsonObject, TokenUsage
from harness_batch.models.recording import (
    Block,
    Called,
    RecordedCall,
    RecordedSession,
    Recording,
    Result,
    Said,
    Thought,
    Trouble,
)
from harness_batch.recipe.file_text import read_small_text
from harness_batch.schema_faults import complaints, validator
from harness_batch.words import dotted

MAX_BYTES = 64 * 1024 * 1024
FORMAT = 1

_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What stands as its escape: no text file has it as it is."""

Json: TypeAlias = Any
"""A part of the document, after the schema has passed it."""


def read_recording(file: Path) -> Recording:
    """Raises: FaultyInput with every fault of the file."""
    text = read_small_text(file, MAX_BYTES)
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        fault = Fault(file, error.lineno, error.colno, f"not JSON: {error.msg}")
        raise _faulty(file, [fault]) from None
    except (ValueError, RecursionError):
        fault = Fault(file, 0, 0, "not JSON: nested too deep, or a number too long")
        raise _faulty(file, [fault]) from None
    faults = list(_faults(file, document))
    if faults:
        raise _faulty(file, faults)
    return _recording(document)


def is_recording(document: object) -> bool:
    """Whether a JSON document means to be one."""
    return isinstance(document, dict) and "recording" in document


def recording_text(recording: Recording) -> str:
    """The file's content; the same recording always gives the same."""
    document: JsonObject = {
        "recording": FORMAT,
        "recipe": recording.recipe,
        "item": recording.item,
        "params": recording.params,
        "matrix": recording.matrix,
        "agent": recording.agent,
        "base": recording.base,
        "options": [list(pair) for pair in recording.options],
        "windows": {
            name: _some(context=info.context, output=info.output)
            for name, info in sorted(recording.windows.items())
        },
        "sessions": [_session_json(session) for session in recording.sessions],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, default=str)
    return _ODD.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"


def schema() -> JsonObject:
    """The JSON Schema of recordings."""
    place = files("harness_batch.models").joinpath("recording_schema.json")
    found: JsonObject = json.loads(place.read_text(encoding="utf-8"))
    return found


def _faulty(file: Path, faults: list[Fault]) -> FaultyInput:
    last = Fault(
        file, 0, 0, "is no recording of harness-batch; `replay SESSION --save FILE` makes one"
    )
    return FaultyInput([*faults[:20], last])


def _faults(file: Path, document: object) -> Iterator[Fault]:
    for complaint in complaints(document, validator(schema()), "the recording"):
        where = f"{dotted(complaint.path)}: " if complaint.path else ""
        yield Fault(file, 0, 0, f"{where}{complaint.message}"[:500])
    if isinstance(document, dict) and isinstance(sessions := document.get("sessions"), list):
        for at, session in enumerate(sessions):
            parent = session.get("parent") if isinstance(session, dict) else None
            if at == 0 and parent is not None:
                yield Fault(file, 0, 0, "sessions[0] is the item's own; it has no parent")
            if at and not (isinstance(parent, int) and parent < at):
                yield Fault(file, 0, 0, f"sessions[{at}].parent names no session before it")


# ---- in


def _recording(document: JsonObject) -> Recording:
    return Recording(
        recipe=document["recipe"],
        item=document["item"],
        params=document.get("params", {}),
        matrix=document.get("matrix", {}),
        agent=document.get("agent", ""),
        base=document.get("base"),
        options=tuple((name, text) for name, text in document.get("options", ())),
        windows={
            name: ModelInfo(context=window.get("context"), output=window.get("output"))
            for name, window in document.get("windows", {}).items()
        },
        sessions=tuple(map(_session, document["sessions"])),
    )


def _session(entry: JsonObject) -> RecordedSession:
    return RecordedSession(
        recipe=entry["recipe"],
        agent=entry["agent"],
        prompts=tuple(map(_text, entry.get("prompts", ()))),
        parent=entry.get("parent"),
        status=entry.get("status"),
        reason=entry.get("reason"),
        calls=tuple(map(_call, entry["calls"])),
        checks=entry.get("checks", {}),
    )


def _call(entry: JsonObject) -> RecordedCall:
    usage, trouble = entry.get("usage"), entry.get("error")
    return RecordedCall(
        model=entry["model"],
        purpose=entry["purpose"],
        blocks=tuple(map(_block, entry.get("reply", ()))),
        finish=entry.get("finish"),
        usage=None if usage is None else TokenUsage(**usage),
        trouble=None if trouble is None else Trouble(**trouble),
    )


def _block(entry: JsonObject) -> Block:
    if "text" in entry:
        return Said(_text(entry["text"]))
    if "thinking" in entry:
        return Thought(
            text=_text(entry["thinking"]),
            signature=entry.get("signature"),
            redacted=entry.get("redacted", False),
        )
    result = None
    for key in ("answer", "failed"):
        if key in entry:
            result = Result(failed=key == "failed", output=_text(entry[key]))
    return Called(
        call_id=entry["call"],
        name=entry["name"],
        arguments=entry["arguments"],
        whole="cut" not in entry,
        result=result,
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "\n".join(value)


# ---- out


def _session_json(session: RecordedSession) -> JsonObject:
    return {
        "recipe": session.recipe,
        "agent": session.agent,
        "prompts": [_lines(prompt) for prompt in session.prompts],
        "parent": session.parent,
        "status": session.status,
        "reason": session.reason,
        "calls": [_call_json(call) for call in session.calls],
        "checks": dict(session.checks),
    }


def _call_json(call: RecordedCall) -> JsonObject:
    usage, trouble = call.usage, call.trouble
    return {
        "model": call.model,
        "purpose": call.purpose,
        "reply": [_block_json(block) for block in call.blocks],
    } | _some(
        finish=call.finish,
        usage=usage
        and {
            "input": usage.input,
            "cache_read": usage.cache_read,
            "cache_write_5m": usage.cache_write_5m,
            "cache_write_1h": usage.cache_write_1h,
            "output": usage.output,
            "reasoning": usage.reasoning,
        },
        error=trouble
        and {"kind": trouble.kind, "message": trouble.message} | _some(status=trouble.status),
    )


def _block_json(block: Block) -> JsonObject:
    match block:
        case Said(text=text):
            return {"text": _lines(text)}
        case Thought(text=text):
            extra = _some(signature=block.signature, redacted=block.redacted or None)
            return {"thinking": _lines(text), **extra}
        case Called(result=result):
            entry: JsonObject = {
                "call": block.call_id,
                "name": block.name,
                "arguments": block.arguments,
            }
            if not block.whole:
                entry["cut"] = True
            if result is not None:
                entry["failed" if result.failed else "answer"] = _lines(result.output)
            return entry


def _lines(text: str) -> Json:
    return text.split("\n") if "\n" in text else text


def _some(**fields: Json) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
