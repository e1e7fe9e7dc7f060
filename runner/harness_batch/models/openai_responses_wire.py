"""A request as OpenAI's Responses API takes it.

The body is pieces joined, as in `anthropic_wire`: shared by the session, items, and last what may
change from step to step; a later body starts with an earlier one's bytes. Nothing is kept by the
server (`store: false`): reasoning comes encrypted and goes back as it came, before the words and
calls it led to.
Source: https://platform.openai.com/docs/api-reference/responses/create
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial

from attrs import frozen

from harness_batch.config.record import Abilities
from harness_batch.messages import (
    Compaction,
    JsonObject,
    PartBody,
    Reasoning,
    Text,
    ToolUse,
    Turn,
)
from harness_batch.models.encoded import OncePerTurn, encode, encode_fields
from harness_batch.models.openai_wire import GO_ON, cache_key
from harness_batch.models.protocol import ModelRequest, Only, ToolSpec
from harness_batch.models.target import Target
from harness_batch.models.tool_uses import answer, arguments, data_url, pictures


@frozen
class Said:
    """What one turn says: the user's text, or whole items of the other side, encoded."""

    user: str = ""
    items: bytes = b""
    last_word: bool = False
    """The items end with a reply, not with results."""


class RequestWriter:
    """Writes the bodies of one session."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._said = OncePerTurn(partial(said_in, abilities=target.abilities))
        self._shared: tuple[tuple[object, ...], bytes] = ((), b"")

    def body(self, request: ModelRequest) -> bytes:
        """The whole request."""
        last: JsonObject = {"max_output_tokens": request.max_output_tokens}
        if request.tool_choice != "auto" and request.tools:
            last["tool_choice"] = _choice(request)
        items = _items(self._said.of(request.turns))
        return b"".join((self._head(request), b",".join(items), b"],", encode_fields(last), b"}"))

    def _head(self, request: ModelRequest) -> bytes:
        key = (request.tools, request.system, request.temperature)
        if self._shared[0] != key:
            self._shared = (key, self._encoded_head(request))
        return self._shared[1]

    def _encoded_head(self, request: ModelRequest) -> bytes:
        options = self._target.options
        head: JsonObject = {
            "model": self._target.model,
            "stream": True,
            "store": False,
            "prompt_cache_key": options.prompt_cache_key or cache_key(request),
        }
        if self._target.abilities.reasoning is not False:
            head["include"] = ["reasoning.encrypted_content"]
        told = {"effort": options.reasoning_effort, "summary": options.reasoning_summary}
        if reasoning := {key: word for key, word in told.items() if word is not None}:
            head["reasoning"] = reasoning
        temperature = self._target.temperature(request.temperature)
        if temperature is not None:
            head["temperature"] = temperature
        head |= options.body
        if request.tools:
            head["tools"] = [_tool(tool) for tool in request.tools]
        if system := "\n\n".join(block for block in request.system if block.strip()):
            head["instructions"] = system
        return b"{" + encode_fields(head) + b',"input":['


def _choice(request: ModelRequest) -> JsonObject | str:
    match request.tool_choice:
        case Only(name=name) if [tool.name for tool in request.tools] == [name]:
            return "required"  # the same, and more servers know it
        case Only(name=name):
            return {"type": "function", "name": name}
        case word:
            return word


def said_in(turn: Turn, abilities: Abilities) -> Said:
    """The turn with the results of its tool calls right after its items."""
    if turn.message.role == "user":
        texts = (_words(part.body) for part in turn.parts)
        return Said(user="\n\n".join(filter(None, texts)))
    items = [item for part in turn.parts if (item := _item(part.body)) is not None]
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # one that led to nothing is refused
    if not items:
        return Said()
    results = [_result(use, abilities) for use in turn.tool_uses()]
    return Said(items=b",".join(map(encode, [*items, *results])), last_word=not results)


def _words(body: PartBody) -> str:
    match body:
        case Text(text=text) | Compaction(summary=text):
            return text if text.strip() else ""
        case _:
            return ""


def _item(body: PartBody) -> JsonObject | None:
    match body:
        case Reasoning(text=text, signature=str(signature)):
            return _reasoning(text, signature)
        case ToolUse() as use:
            return {
                "type": "function_call",
                "call_id": use.call_id,
                "name": use.name,
                "arguments": encode(arguments(use.state)).decode(),
            }
        case _ if text := _words(body):
            content = [{"type": "output_text", "text": text}]
            return {"type": "message", "role": "assistant", "content": content}
        case _:
            return None


def _reasoning(text: str, signature: str) -> JsonObject | None:
    """The item that `response_items` took apart; None for what another kind of provider signed."""
    try:
        kept = json.loads(signature)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(kept, dict) and isinstance(kept.get("encrypted_content"), str)):
        return None
    # These two alone: another provider may have signed with an item of its own making.
    sealed = {
        key: kept[key] for key in ("id", "encrypted_content") if isinstance(kept.get(key), str)
    }
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", **sealed, "summary": summary}


def _items(turns: Sequence[Said]) -> Iterator[bytes]:
    """User texts that follow each other are one message; the user begins and speaks between."""
    waiting: list[str] = []
    users_turn = True
    for said in turns:
        if said.user:
            waiting.append(said.user)
        if said.items:
            if waiting or users_turn:
                yield _user(waiting or [GO_ON])
            yield said.items
            waiting, users_turn = [], said.last_word
    if waiting or users_turn:
        yield _user(waiting or [GO_ON])


def _user(texts: Sequence[str]) -> bytes:
    content = [{"type": "input_text", "text": "\n\n".join(texts)}]
    return encode({"type": "message", "role": "user", "content": content})


def _tool(tool: ToolSpec) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _result(use: ToolUse, abilities: Abilities) -> JsonObject:
    text, failed = answer(use.state)
    # There is no field that says so.
    output: str | list[JsonObject] = f"error: {text}" if failed else text
    if seen := pictures(use.state, abilities):
        images = [{"type": "input_image", "image_url": data_url(image)} for image in seen]
        output = [{"type": "input_text", "text": text}, *images]
    return {"type": "function_call_output", "call_id": use.call_id, "output": output}
