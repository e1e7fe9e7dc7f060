"""The Responses API: replies as its events, and what the real one would refuse with 400."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field

from wire.events import Event, argument_pieces, arguments_of, call_id, pieces_of
from wire.script import Block, Call, Redacted, Reply, Say, Think

Json = dict[str, Any]
_KEYS = {
    "model", "input", "instructions", "tools", "tool_choice", "stream", "store", "include",
    "temperature", "max_output_tokens", "reasoning", "prompt_cache_key", "text", "service_tier",
}  # fmt: skip


# --- replies -------------------------------------------------------------------------------------


def events_of(reply: Reply, number: int, model: str) -> Iterator[Event]:
    """All events of the reply, numbered as the real ones are."""
    for sequence, body in enumerate(_Rendering(reply, number, model).events()):
        body["sequence_number"] = sequence
        yield Event(json.dumps(body, ensure_ascii=False), body["type"])


def error_of(error: Mapping[str, Any]) -> Event:
    """An error inside the stream; its fields stand in the event itself."""
    code = error.get("code") or error.get("type")
    body = {"type": "error", "code": code, "message": error.get("message"), "param": None}
    return Event(json.dumps({**body, "sequence_number": 0}), "error")


@define
class _Rendering:
    reply: Reply
    number: int
    model: str
    output: list[Json] = field(factory=list)

    def events(self) -> Iterator[Json]:
        yield self._of_response("response.created", "in_progress")
        yield self._of_response("response.in_progress", "in_progress")
        for block in self.reply.blocks:
            yield from self._item(block, len(self.output))
        reason = self.reply.stop or self.reply.delivery.finish_reason
        status = "incomplete" if reason in {"max_output_tokens", "content_filter"} else "completed"
        last = self._of_response(f"response.{status}", status)
        if status == "incomplete":
            last["response"]["incomplete_details"] = {"reason": reason}
        if self.reply.delivery.usage:
            last["response"]["usage"] = self._usage()
        yield last

    def _of_response(self, kind: str, status: str) -> Json:
        response: Json = {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": list(self.output),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "store": False,
            "usage": None,
        }
        return {"type": kind, "response": response}

    def _item(self, block: Block, index: int) -> Iterator[Json]:
        match block:
            case Say(text=text):
                begun: Json = {"type": "message", "role": "assistant", "content": []}
                part: Json = {"type": "output_text", "text": text, "annotations": []}
                done: Json = {"content": [part]}
                deltas = self._text(text)
            case Think(text=text, signature=signature):
                begun = {"type": "reasoning", "summary": []}
                summary = [{"type": "summary_text", "text": text}] if text else []
                done = {"summary": summary, "encrypted_content": signature}
                deltas = self._summary(text)
            case Redacted(data=data):
                begun = {"type": "reasoning", "summary": []}
                done, deltas = {"encrypted_content": data}, iter(())
            case Call() as call:
                identity = call_id(call, self.number, index, "call")
                begun = {"type": "function_call", "call_id": identity, "name": call.name}
                begun["arguments"] = ""
                done, deltas = {"arguments": arguments_of(call)}, self._arguments(call)
        item: Json = {"id": f"item_{self.number}_{index}", "status": "in_progress", **begun}
        if item["type"] == "reasoning":
            del item["status"]
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        for delta in deltas:
            yield {"item_id": item["id"], "output_index": index, **delta}
        finished = {**item, **done}
        if "status" in item:
            finished["status"] = "completed"
        self.output.append(finished)
        yield {"type": "response.output_item.done", "output_index": index, "item": finished}

    def _text(self, text: str) -> Iterator[Json]:
        place = {"content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.content_part.added", **place, "part": part}
        for piece in pieces_of(text):
            more = {"delta": piece, "logprobs": []}
            yield {"type": "response.output_text.delta", **place, **more}
        yield {"type": "response.output_text.done", **place, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **place, "part": {**part, "text": text}}

    def _summary(self, text: str) -> Iterator[Json]:
        place, kind = {"summary_index": 0}, "response.reasoning_summary"
        part = {"type": "summary_text", "text": ""}
        if text:
            yield {"type": f"{kind}_part.added", **place, "part": part}
            for piece in pieces_of(text):
                yield {"type": f"{kind}_text.delta", **place, "delta": piece}
            yield {"type": f"{kind}_text.done", **place, "text": text}
            yield {"type": f"{kind}_part.done", **place, "part": {**part, "text": text}}

    def _arguments(self, call: Call) -> Iterator[Json]:
        kind = "response.function_call_arguments"
        for piece in argument_pieces(call, self.reply.delivery):
            yield {"type": f"{kind}.delta", "delta": piece}
        yield {"type": f"{kind}.done", "name": call.name, "arguments": arguments_of(call)}

    def _usage(self) -> Json:
        usage = self.reply.usage
        written = usage.cache_write_5m + usage.cache_write_1h
        total = usage.input + usage.cache_read + written
        body: Json = {
            "input_tokens": total,
            "input_tokens_details": {
                "cached_tokens": usage.cache_read,
                "cache_write_tokens": written,
            },
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": total + usage.output,
        }
        return body if usage.cost is None else {**body, "cost": usage.cost}


# --- requests ------------------------------------------------------------------------------------


def replies_in(items: Sequence[Mapping[str, Any]]) -> int:
    """Replies of the model: items of its side that stand together."""
    sides = ["model" if _is_models(item) else "ours" for item in items]
    return sum(side == "model" != before for before, side in zip(["", *sides], sides, strict=False))


def fault(body: Mapping[str, Any]) -> str | None:
    """The first thing wrong with a request to /v1/responses."""
    return next(_faults(body), None)


def _faults(body: Mapping[str, Any]) -> Iterator[str]:
    for key in set(body) - _KEYS:
        yield f"Unknown parameter: '{key}'."
    if not isinstance(body.get("model"), str) or body.get("stream") is not True:
        yield "Missing required parameter: 'model', or this server only streams"
    if body.get("store") is not False or "previous_response_id" in body:
        yield "store: nothing is kept here"
    if not isinstance(body.get("max_output_tokens"), int) or body["max_output_tokens"] < 1:
        yield "Invalid 'max_output_tokens': integer below minimum value."
    if "instructions" in body and not isinstance(body["instructions"], str):
        yield "Invalid type for 'instructions'."
    for tool in body.get("tools", ()):
        if tool.get("type") != "function" or not isinstance(tool.get("name"), str):
            yield "Missing required parameter: 'tools[0].name'."
        if (tool.get("parameters") or {}).get("type") != "object":
            yield "Invalid schema for function: schema must be of type 'object'."
    if "tool_choice" in body and not body.get("tools"):
        yield "Tool choice is only allowed when 'tools' are specified."
    items = body.get("input")
    if not isinstance(items, list) or not items:
        yield "Missing required parameter: 'input'."
    else:
        yield from _input_faults(items)


def _input_faults(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    waiting = list[str]()
    before: Mapping[str, Any] = {}
    for number, item in enumerate(items):
        kind = item.get("type")
        if before.get("type") == "reasoning" and not _is_models(item):
            yield f"input[{number}]: 'reasoning' was provided without its required following item"
        if kind == "function_call_output":
            if item.get("call_id") not in waiting:
                yield f"No tool call found for function call output with call_id {number}."
            else:
                waiting.remove(item["call_id"])
        elif waiting and not _is_models(item):
            yield f"No tool output found for function call {waiting[0]}."
        elif kind == "function_call":
            waiting.append(item["call_id"])
        yield from _item_faults(item)
        before = item
    if waiting or _is_models(before):
        yield "the last item must be ours, and every call needs its output"


def _item_faults(item: Mapping[str, Any]) -> Iterator[str]:
    match item.get("type"), item.get("role"):
        case "message", "user":
            yield from _content(item.get("content"), {"input_text", "input_image"})
        case "message", "assistant":
            yield from _content(item.get("content"), {"output_text", "refusal"})
        case "reasoning", None:
            if not (item.get("id") and item.get("encrypted_content")):
                yield f"Item with id '{item.get('id')}' not found."
            if not isinstance(item.get("summary"), list):
                yield "Missing required parameter: 'summary'."
        case "function_call", None:
            if not isinstance(item.get("arguments"), str) or not item.get("name"):
                yield "Invalid type for 'arguments': expected a string."
        case "function_call_output", None:
            if not isinstance(item.get("output"), str):
                yield from _content(item.get("output"), {"input_text", "input_image"})
        case kind, role:
            yield f"Invalid value: {kind!r} of role {role!r}."


def _content(parts: object, kinds: set[str]) -> Iterator[str]:
    if not isinstance(parts, list) or not parts:
        yield "content: expected a list of parts"
        return
    for part in parts:
        if part.get("type") not in kinds:
            yield f"Invalid value: {part.get('type')!r}."
        if part.get("type") == "input_image":
            if not str(part.get("image_url")).startswith("data:image/"):
                yield "Invalid 'image_url'."
        elif not isinstance(part.get("text"), str) or not part["text"]:
            yield "content: expected a text"


def _is_models(item: Mapping[str, Any]) -> bool:
    return item.get("type") in {"reasoning", "function_call"} or item.get("role") == "assistant"
