"""Replies as the events of the wire formats, and events as bytes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from wire import responses
from wire.events import Event, argument_pieces, call_id, pieces_of
from wire.script import Block, Call, Delivery, Redacted, Reply, Say, Think

Format = Literal["anthropic", "openai", "responses"]
Json: TypeAlias = dict[str, Any]


def events_of(reply: Reply, form: Format, number: int, model: str) -> list[Event]:
    """All events of the reply; `number` makes ids that are unique in the conversation."""
    match form:
        case "anthropic":
            events = list(_anthropic(reply, number, model))
        case "openai":
            events = list(_openai(reply, number, model))
        case "responses":
            events = list(responses.events_of(reply, number, model))
    if reply.delivery.error_after is not None:
        count, error = reply.delivery.error_after
        events = [*events[:count], _error(form, error)]
    return events


def _error(form: Format, error: Mapping[str, Any]) -> Event:
    match form:
        case "anthropic":
            return _named("error", error=dict(error))
        case "openai":
            return Event(json.dumps({"error": error}))
        case "responses":
            return responses.error_of(error)


def bytes_of(events: Sequence[Event], delivery: Delivery) -> list[bytes]:
    """The stream, one piece a write, before anything is cut."""
    pieces = [_event(event, delivery, number) for number, event in enumerate(events)]
    if delivery.bom and pieces:
        pieces[0] = b"\xef\xbb\xbf" + pieces[0]
    if not delivery.last_blank_line and pieces:
        pieces[-1] = pieces[-1][: -len(delivery.newline) * 2]
    if delivery.chunk is None:
        return pieces
    whole = b"".join(pieces)
    size = delivery.chunk or len(whole)
    return [whole[i : i + size] for i in range(0, len(whole), size)]


def _event(event: Event, delivery: Delivery, number: int) -> bytes:
    lines: list[str] = []
    if delivery.comments:
        lines += [": keep-alive", ""]
    if delivery.unknown_events:
        lines += ["event: weather", 'data: {"type": "weather", "sky": "blå 🌤"}', ""]
    if delivery.ids:
        lines.append(f"id: {number}")
    if event.name:
        lines.append(f"event: {event.name}")
    lines += [f"data: {event.data}", "", ""]
    return delivery.newline.join(lines).encode()


# --- Anthropic -----------------------------------------------------------------------------------


def _anthropic(reply: Reply, number: int, model: str) -> Iterator[Event]:
    usage = reply.usage
    creation = {
        "ephemeral_5m_input_tokens": usage.cache_write_5m,
        "ephemeral_1h_input_tokens": usage.cache_write_1h,
    }
    begin: Json = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write_5m + usage.cache_write_1h,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": creation,
        "output_tokens": 1,
        "service_tier": "standard",
    }
    message: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
    message |= {"model": model, "content": [], "stop_reason": None, "stop_sequence": None}
    if reply.delivery.usage:
        message["usage"] = begin
    yield _named("message_start", message=message)
    for index, block in enumerate(reply.blocks):
        yield from _anthropic_block(block, index, number, reply.delivery)
        if index == 0:
            yield _named("ping")
    reason = reply.delivery.finish_reason or reply.stop
    if reason is None:
        reason = "tool_use" if any(isinstance(b, Call) for b in reply.blocks) else "end_turn"
    closing: Json = {"delta": {"stop_reason": reason, "stop_sequence": None}}
    if reply.delivery.usage:
        closing["usage"] = {"output_tokens": usage.output}
        if usage.reasoning:
            closing["usage"]["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    yield _named("message_delta", **closing)
    if reply.delivery.end_mark:
        yield _named("message_stop")


def _anthropic_block(block: Block, index: int, number: int, delivery: Delivery) -> Iterator[Event]:
    deltas: list[Json]
    match block:
        case Say(text=text):
            start: Json = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(text)]
        case Think(text=text, signature=signature):
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces_of(text)]
            deltas.append({"type": "signature_delta", "signature": signature})
        case Redacted(data=data):
            start, deltas = {"type": "redacted_thinking", "data": data}, []
        case Call() as call:
            identity = call_id(call, number, index, "toolu")
            start = {"type": "tool_use", "id": identity, "name": call.name, "input": {}}
            pieces = ["", *argument_pieces(call, delivery)]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    yield _named("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _named("content_block_delta", index=index, delta=delta)
    yield _named("content_block_stop", index=index)


def _named(kind: str, **fields: Any) -> Event:
    return Event(json.dumps({"type": kind, **fields}, ensure_ascii=False), kind)


# --- OpenAI --------------------------------------------------------------------------------------


def _openai(reply: Reply, number: int, model: str) -> Iterator[Event]:
    def chunk(choices: list[Json], usage: Json | None = None) -> Event:
        body: Json = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": model,
            "choices": choices,
        }
        if reply.delivery.usage:
            body["usage"] = usage
        return Event(json.dumps(body, ensure_ascii=False))

    def delta(content: Mapping[str, Any], reason: str | None = None) -> Event:
        return chunk([{"index": 0, "delta": content, "logprobs": None, "finish_reason": reason}])

    yield delta({"role": "assistant", "content": ""})
    calls = [block for block in reply.blocks if isinstance(block, Call)]
    for block in reply.blocks:
        match block:
            case Say(text=text):
                yield from (delta({"content": piece}) for piece in pieces_of(text))
            case Think(text=text):
                key = reply.delivery.reasoning_key
                yield from (delta({key: piece}) for piece in pieces_of(text))
            case _:
                pass
    for position, call in enumerate(calls):
        for item in _openai_call(call, position, number, reply.delivery):
            yield delta({"tool_calls": [item]})
    reason = reply.delivery.finish_reason or reply.stop or ("tool_calls" if calls else "stop")
    yield delta({}, reason)
    if reply.delivery.usage:
        yield chunk([], _openai_usage(reply))
    if reply.delivery.end_mark:
        yield Event("[DONE]")


def _openai_call(call: Call, position: int, number: int, delivery: Delivery) -> Iterator[Json]:
    identity = call_id(call, number, position, "call")
    style = delivery.tool_deltas
    pieces = argument_pieces(call, delivery)
    if delivery.arguments == "pieces":
        pieces = ["", *pieces]
    for turn, piece in enumerate(pieces):
        first = turn == 0
        function: Json = {"arguments": piece}
        if first or style == "repeated":
            function["name"] = call.name
        item: Json = {"index": position, "function": function}
        if first or style == "repeated":
            item |= {"id": identity, "type": "function"}
        if first and call.extra:
            item["extra_content"] = dict(call.extra)
        match style:
            case "no-index":
                del item["index"]
            case "same-index":
                item["index"] = 0
            case "no-id":
                item.pop("id", None)
            case "new-ids":
                item["id"] = f"{identity}_{turn}"
            case "standard" | "repeated":
                pass
        yield item


def _openai_usage(reply: Reply) -> Json:
    usage = reply.usage
    total = usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h
    written = usage.cache_write_5m + usage.cache_write_1h
    body: Json = {
        "prompt_tokens": total,
        "completion_tokens": usage.output,
        "total_tokens": total + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
    if usage.cost is not None:
        body["cost"] = usage.cost
    return body
