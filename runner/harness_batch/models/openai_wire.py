"""A request as OpenAI's chat completions take it, and the many servers that imitate them.

The body is pieces joined, as in `anthropic_wire`: shared by the session, messages, and last what
may change from step to step; a later body starts with an earlier one's bytes. Reasoning is not
sent back: there is no agreed place for it. Images follow the results as the user's words, since
results are texts only.
Source: https://platform.openai.com/docs/api-reference/chat
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from urllib.parse import urlsplit

from attrs import frozen

from harness_batch.config.record import Abilities
from harness_batch.messages import Compaction, JsonObject, Text, ToolUse, Turn
from harness_batch.models.encoded import OncePerTurn, encode, encode_fields
from harness_batch.models.protocol import ModelRequest, Only, ToolSpec
from harness_batch.models.target import Target
from harness_batch.models.tool_uses import answer, arguments, data_url, pictures

GO_ON = "(go on)"
"""The user's word where the transcript has none and the wire wants one."""

Piece = str | JsonObject
"""A piece of what the user says: text, or an image part."""


@frozen
class Said:
    """What one turn says: the user's text, or whole messages of the other side, encoded."""

    user: tuple[Piece, ...] = ()
    """After the messages, when there are both."""
    messages: bytes = b""
    last_word: bool = False
    """The messages end with a reply, not with results."""


class RequestWriter:
    """Writes the bodies of one session."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._at_home = _is_openais(target.base_url)
        self._said = OncePerTurn(partial(said_in, abilities=target.abilities))
        self._shared: tuple[tuple[object, ...], bytes] = ((), b"")

    def body(self, request: ModelRequest) -> bytes:
        """The whole request."""
        # OpenAI's newer models refuse `max_tokens`, most other servers know nothing else.
        limit = "max_completion_tokens" if self._at_home else "max_tokens"
        last: JsonObject = {limit: request.max_output_tokens}
        if request.tool_choice != "auto" and request.tools:
            last["tool_choice"] = _choice(request)
        messages = [*self._system(request), *_messages(self._said.of(request.turns))]
        return b"".join(
            (self._head(request), b",".join(messages), b"],", encode_fields(last), b"}")
        )

    def _head(self, request: ModelRequest) -> bytes:
        key = (request.tools, request.system, request.temperature)
        if self._shared[0] != key:
            self._shared = (key, self._encoded_head(request))
        return self._shared[1]

    def _encoded_head(self, request: ModelRequest) -> bytes:
        head: JsonObject = {
            "model": self._target.model,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        options = self._target.options
        temperature = self._target.temperature(request.temperature)
        if temperature is not None:
            head["temperature"] = temperature
        if options.reasoning_effort is not None:
            head["reasoning_effort"] = options.reasoning_effort
        if options.prompt_cache_key or self._at_home:
            head["prompt_cache_key"] = options.prompt_cache_key or cache_key(request)
        head |= options.body
        if request.tools:
            head["tools"] = [_tool(tool) for tool in request.tools]
        return b"{" + encode_fields(head) + b',"messages":['

    @staticmethod
    def _system(request: ModelRequest) -> list[bytes]:
        # One text: many servers' templates know no list of parts here.
        text = "\n\n".join(block for block in request.system if block.strip())
        return [encode({"role": "system", "content": text})] if text else []


def _choice(request: ModelRequest) -> JsonObject | str:
    match request.tool_choice:
        case Only(name=name) if [tool.name for tool in request.tools] == [name]:
            return "required"  # the same, and more servers know it
        case Only(name=name):
            return {"type": "function", "function": {"name": name}}
        case word:
            return word


def cache_key(request: ModelRequest) -> str:
    """The same for all requests that share tools and system prompt: their cache is one."""
    shared = encode([[_tool(tool) for tool in request.tools], request.system])
    return "hb-" + blake2b(shared, digest_size=12).hexdigest()


def _is_openais(base_url: str) -> bool:
    """OpenAI's own servers; those that imitate them may refuse what they do not know."""
    host = urlsplit(base_url).hostname or ""
    return host == "api.openai.com" or host.endswith(".openai.azure.com")


def said_in(turn: Turn, abilities: Abilities) -> Said:
    """The turn with the results of its tool calls right after them."""
    texts = [
        text
        for part in turn.parts
        if isinstance(part.body, Text | Compaction)
        and (text := part.body.text if isinstance(part.body, Text) else part.body.summary).strip()
    ]
    if turn.message.role == "user":
        return Said(user=tuple(texts))
    uses = turn.tool_uses()
    if not (texts or uses):
        return Said()
    reply: JsonObject = {"role": "assistant", "content": "".join(texts) or None}
    if uses:
        reply["tool_calls"] = [_call(use) for use in uses]
    messages = [reply, *(_result(use) for use in uses)]
    seen = tuple(piece for use in uses for piece in _pictures(use, abilities))
    return Said(user=seen, messages=b",".join(map(encode, messages)), last_word=not uses)


def _pictures(use: ToolUse, abilities: Abilities) -> Iterator[Piece]:
    for number, image in enumerate(pictures(use.state, abilities), 1):
        yield f"(image {number} of the result of {use.call_id})"
        yield {"type": "image_url", "image_url": {"url": data_url(image)}}


def _messages(turns: Sequence[Said]) -> Iterator[bytes]:
    """User texts that follow each other are one message: many templates want sides to alternate."""
    waiting: list[Piece] = []
    users_turn = True
    for said in turns:
        if said.messages:
            if waiting or users_turn:
                yield _user(waiting or [GO_ON])
            yield said.messages
            waiting, users_turn = [], said.last_word
        waiting.extend(said.user)
    if waiting or users_turn:
        yield _user(waiting or [GO_ON])


def _user(pieces: Sequence[Piece]) -> bytes:
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) == len(pieces):  # many servers' templates know no list of parts
        return encode({"role": "user", "content": "\n\n".join(texts)})
    parts = [{"type": "text", "text": p} if isinstance(p, str) else p for p in pieces]
    return encode({"role": "user", "content": parts})


def _tool(tool: ToolSpec) -> JsonObject:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _call(use: ToolUse) -> JsonObject:
    function = {"name": use.name, "arguments": encode(arguments(use.state)).decode()}
    call: JsonObject = {"id": use.call_id, "type": "function", "function": function}
    return call if use.sealed is None else {**call, "extra_content": json.loads(use.sealed)}


def _result(use: ToolUse) -> JsonObject:
    text, failed = answer(use.state)
    # There is no field that says so.
    content = f"error: {text}" if failed else text
    return {"role": "tool", "tool_call_id": use.call_id, "content": content}
