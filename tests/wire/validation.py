"""What the real APIs would refuse with 400: the message of it, or None for a good request."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_ANTHROPIC_KEYS = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "temperature",
    "thinking", "output_config", "metadata", "service_tier", "top_p", "top_k",
}  # fmt: skip
_OPENAI_KEYS = {
    "model", "messages", "tools", "tool_choice", "stream", "stream_options", "temperature",
    "max_tokens", "max_completion_tokens", "prompt_cache_key", "reasoning_effort", "service_tier",
    "provider", "verbosity", "top_p",
}  # fmt: skip
_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")


def anthropic_fault(body: Mapping[str, Any]) -> str | None:
    """The first thing wrong with a request to /v1/messages."""
    return next(_anthropic_faults(body), None)


def openai_fault(body: Mapping[str, Any]) -> str | None:
    """The first thing wrong with a request to /v1/chat/completions."""
    return next(_openai_faults(body), None)


def _anthropic_faults(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _common(body, _ANTHROPIC_KEYS)
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Input should be greater than or equal to 1"
    for tool in body.get("tools", ()):
        if set(tool) - {"name", "description", "input_schema", "cache_control"}:
            yield "tools: Extra inputs are not permitted"
        yield from _tool(tool.get("name"), tool.get("input_schema"))
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice may only be specified while providing tools"
    yield from _thinking(body)
    marks = sum(1 for item in _everything(body) if "cache_control" in item)
    if marks > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    for block in body.get("system", ()):
        yield from _text(block)
    yield from _anthropic_messages(body["messages"])


def _thinking(body: Mapping[str, Any]) -> Iterator[str]:
    thinking = body.get("thinking")
    if thinking is None:
        return
    if thinking["type"] == "enabled" and not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`, which is at least 1024"
    if body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled"
    if body.get("tool_choice", {}).get("type") in {"any", "tool"}:
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _anthropic_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    role, open_calls = "assistant", list[str]()
    for number, message in enumerate(messages):
        if message.get("role") == role or message.get("role") not in {"user", "assistant"}:
            yield f"messages.{number}: roles must alternate"
        role = message["role"]
        blocks = message.get("content")
        if not isinstance(blocks, list) or not blocks:
            yield f"messages.{number}: all messages must have non-empty content"
            return
        results = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        first = [b.get("type") == "tool_result" for b in blocks[: len(results)]]
        if sorted(results) != sorted(open_calls) or not all(first):
            yield (
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(open_calls) or 'unexpected results'}"
            )
        open_calls = [b["id"] for b in blocks if b.get("type") == "tool_use"]
        if len(set(open_calls)) < len(open_calls):
            yield f"messages.{number}: `tool_use` ids must be unique"
        for block in blocks:
            yield from _anthropic_block(block, role)
        if blocks[-1].get("type") in {"thinking", "redacted_thinking"}:
            yield f"messages.{number}: the final block of a message cannot be thinking"
    if role != "user":
        yield "This model does not support assistant message prefill"


def _anthropic_block(block: Mapping[str, Any], role: str) -> Iterator[str]:
    match block.get("type"), role:
        case "text", _:
            yield from _text(block)
        case "thinking", "assistant":
            if not block.get("signature") or "cache_control" in block:
                yield "thinking: signature: Field required, cache_control not permitted"
        case "redacted_thinking", "assistant":
            if not block.get("data"):
                yield "redacted_thinking: data: Field required"
        case "tool_use", "assistant":
            if not isinstance(block.get("input"), dict) or not _ID.fullmatch(block["id"]):
                yield "tool_use: input should be a valid dictionary, id match ^[a-zA-Z0-9_-]+$"
        case "tool_result", "user":
            if isinstance(block.get("content"), list):
                yield from (f for part in block["content"] for f in _result_part(part))
            elif not isinstance(block.get("content"), str):
                yield "tool_result: content: Input should be a valid string"
        case kind, _:
            yield f"messages: unexpected {kind!r} block for role {role}"


def _result_part(part: Mapping[str, Any]) -> Iterator[str]:
    if part.get("type") != "image":
        yield from _text(part)
    elif part["source"]["type"] != "base64" or part["source"]["media_type"] not in _IMAGES:
        yield "image: source: Input should be one of the image types"


def _text(block: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(block.get("text"), str) or not block["text"].strip():
        yield "messages: text content blocks must be non-empty"


def _everything(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from body.get("system", ())
    yield from body.get("tools", ())
    for message in body["messages"]:
        if isinstance(message.get("content"), list):
            yield from message["content"]


def _openai_faults(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _common(body, _OPENAI_KEYS)
    if "tools" in body and not body["tools"]:
        yield "[] is too short - 'tools'"
    for tool in body.get("tools", ()):
        function = tool.get("function") or {}
        if tool.get("type") != "function":
            yield "Missing required parameter: 'tools[0].type'"
        yield from _tool(function.get("name"), function.get("parameters"))
    if "tool_choice" in body and not body.get("tools"):
        yield "'tool_choice' is only allowed when 'tools' are specified."
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
    yield from _openai_messages(body["messages"])


def _openai_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    waiting = list[str]()
    before = ""
    for number, message in enumerate(messages):
        role = str(message.get("role"))
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                yield f"messages.[{number}]: 'tool' must follow a message with 'tool_calls'"
        elif waiting:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages "
                f"responding to each 'tool_call_id'. Missing: {', '.join(waiting)}"
            )
        if role == before == "user":
            yield f"messages.[{number}]: Conversation roles must alternate"
        calls = message.get("tool_calls") or []
        yield from (f"messages.[{number}]{fault}" for fault in _openai_message(message, calls))
        if role == "assistant":
            waiting = [call["id"] for call in calls]
        before = role
    if waiting or before == "assistant":
        yield "the last message must be of role user or tool"


def _openai_message(
    message: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    content = message.get("content")
    match message.get("role"):
        case "user" if isinstance(content, list):
            kinds = {part.get("type") for part in content}
            if not content or kinds - {"text", "image_url"}:
                yield ".content: expected text and image parts"
        case "system" | "user" | "tool" if not isinstance(content, str) or not content:
            yield ".content: expected a text"
        case "assistant" if content is None and not calls:
            yield ".content: expected a string, got null"
        case "system" | "user" | "tool" | "assistant":
            pass
        case role:
            yield f".role: invalid value {role!r}"
    if any(not isinstance(call["function"]["arguments"], str) for call in calls):
        yield ".tool_calls: arguments: expected a string"


def _common(body: Mapping[str, Any], known: Iterable[str]) -> Iterator[str]:
    for key in set(body) - set(known):
        yield f"{key}: Extra inputs are not permitted"
    if not isinstance(body.get("model"), str):
        yield "model: Field required"
    if body.get("stream") is not True:
        yield "stream: this server only streams"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        yield "messages: at least one message is required"


def _tool(name: object, schema: object) -> Iterator[str]:
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        yield f"tools.name: {name!r} should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield "tools.input_schema.type: Field required"
