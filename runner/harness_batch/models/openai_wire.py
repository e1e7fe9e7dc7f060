"""A request as OpenAI's chat completions take it, and the many servers that imitate them.

The body is pieces joined, as in `anthropic_wire`: shared by the session, messages, and last what
may change from step to step; a later body starts with an earlier one's bytes. Reasoning is not
sent back: there is no agreed place for it.
Source: https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from attrs import frozen

from harness_batch.messages import Compaction, JsonObject, Text, ToolUse, Turn
from harness_batch.models.encoded import OncePerTurn, encode, encode_fields
from harness_batch.models.protocol import ModelRequest, Only, ToolChoice, ToolSpec
from harness_batch.models.tool_uses import answer, arguments

GO_ON = "(go on)"
"""The user's word where the transcript has none and the wire wants one."""

LimitName = Literal["max_tokens", "max_completion_tokens"]
"""What the server calls the most tokens of a reply."""


@frozen
class Said:
    """What one turn says: the user's text, or whole messages of the other side, encoded."""

    user: str = ""
    messages: bytes = b""
    last_word: bool = False
    """The messages end with a reply, not with results."""


class RequestWriter:
    """Writes the bodies of one session."""

    def __init__(self, model: str, limit_name: LimitName) -> None:
        self._model = model
        self._limit_name = limit_name
        self._said = OncePerTurn(said_in)
        self._shared: tuple[tuple[object, ...], bytes] = ((), b"")

    def body(self, request: ModelRequest) -> bytes:
        """The whole request."""
        last: JsonObject = {self._limit_name: request.max_output_tokens}
        if request.tool_choice != "auto" and request.tools:
            last["tool_choice"] = _choice(request.tool_choice)
        messages = [*self._system(request), *_messages(self._said.of(request.turns))]
        return b"".join(
            (self._head(request), b",".join(messages), b"],", encode_fields(last), b"}")
        )

    def _head(self, request: ModelRequest) -> bytes:
        key = (request.tools, request.temperature)
        if self._shared[0] != key:
            self._shared = (key, self._encoded_head(request))
        return self._shared[1]

    def _encoded_head(self, request: ModelRequest) -> bytes:
        head: JsonObject = {
            "model": self._model,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.temperature is not None:
            head["temperature"] = request.temperature
        if request.tools:
            head["tools"] = [_tool(tool) for tool in request.tools]
        return b"{" + encode_fields(head) + b',"messages":['

    @staticmethod
    def _system(request: ModelRequest) -> list[bytes]:
        # One text: many servers' templates know no list of parts here.
        text = "\n\n".join(block for block in request.system if block.strip())
        return [encode({"role": "system", "content": text})] if text else []


def _choice(choice: ToolChoice) -> JsonObject | str:
    match choice:
        case Only(name=name):
            return {"type": "function", "function": {"name": name}}
        case word:
            return word


def said_in(turn: Turn) -> Said:
    """The turn with the results of its tool calls right after them."""
    texts = [
        text
        for part in turn.parts
        if isinstance(part.body, Text | Compaction)
        and (text := part.body.text if isinstance(part.body, Text) else part.body.summary).strip()
    ]
    if turn.message.role == "user":
        return Said(user="\n\n".join(texts))
    uses = turn.tool_uses()
    if not (texts or uses):
        return Said()
    reply: JsonObject = {"role": "assistant", "content": "".join(texts) or None}
    if uses:
        reply["tool_calls"] = [_call(use) for use in uses]
    messages = [reply, *(_result(use) for use in uses)]
    return Said(messages=b",".join(map(encode, messages)), last_word=not uses)


def _messages(turns: Sequence[Said]) -> Iterator[bytes]:
    """User texts that follow each other are one message: many templates want sides to alternate."""
    waiting: list[str] = []
    users_turn = True
    for said in turns:
        if said.user:
            waiting.append(said.user)
        if said.messages:
            if waiting or users_turn:
                yield _user(waiting or [GO_ON])
            yield said.messages
            waiting, users_turn = [], said.last_word
    if waiting or users_turn:
        yield _user(waiting or [GO_ON])


def _user(texts: Sequence[str]) -> bytes:
    return encode({"role": "user", "content": "\n\n".join(texts)})


def _tool(tool: ToolSpec) -> JsonObject:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _call(use: ToolUse) -> JsonObject:
    function = {"name": use.name, "arguments": encode(arguments(use.state)).decode()}
    return {"id": use.call_id, "type": "function", "function": function}


def _result(use: ToolUse) -> JsonObject:
    text, failed = answer(use.state)
    # There is no field that says so.
    content = f"error: {text}" if failed else text
    return {"role": "tool", "tool_call_id": use.call_id, "content": content}
