"""A request as Anthropic's Messages API takes it.

The body is pieces joined: what the whole session shares (model, tools, system), the messages, and
at the very end what may change from step to step, so that a later body starts with an earlier
one's bytes; only the `cache_control` marks on the last two messages move on. Whatever the
transcript holds, the wire is well-formed: turns of one role merged, every tool use answered right
after, nothing empty.
Source: https://platform.claude.com/docs/en/api/messages
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

from attrs import frozen

from harness_batch.config.record import Abilities
from harness_batch.messages import Compaction, JsonObject, Reasoning, Text, ToolUse, Turn
from harness_batch.models.encoded import OncePerTurn, encode, encode_fields
from harness_batch.models.protocol import ModelRequest, Only, ToolChoice, ToolSpec
from harness_batch.models.target import Target
from harness_batch.models.tool_uses import answer, arguments, pictures

CACHE_MARK = b',"cache_control":{"type":"ephemeral"}'
LONG_MARK = b',"cache_control":{"type":"ephemeral","ttl":"1h"}'
LEAST_THINKING = 1024
"""Tokens; a smaller budget is refused."""
LEAST_ANSWER = 1024
"""Tokens of a reply that thinking must leave."""

Side = Literal["user", "assistant"]
_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


@frozen
class Block:
    """An encoded content block; thinking takes no cache mark and may not end a message."""

    json: bytes
    thinking: bool = False


@frozen
class Piece:
    """What one turn says on one side of the conversation."""

    side: Side
    blocks: tuple[Block, ...]
    message: bytes
    """The blocks as a whole message without marks."""


class RequestWriter:
    """Writes the bodies of one session."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pieces = OncePerTurn(partial(pieces_of, abilities=target.abilities))
        self._shared: tuple[tuple[object, ...], bytes] = ((), b"")

    def body(self, request: ModelRequest) -> bytes:
        """The whole request."""
        messages = list(_messages(self._pieces.of(request.turns)))
        encoded = [piece.message for piece in messages[:-2]]
        encoded += [_message(piece.side, piece.blocks, mark=True) for piece in messages[-2:]]
        thinking = self._thinking(request.max_output_tokens)
        last: JsonObject = {"max_tokens": request.max_output_tokens, **thinking}
        # A model that thinks cannot be made to call one tool.
        forced = isinstance(request.tool_choice, Only) and thinking
        if request.tool_choice != "auto" and request.tools and not forced:
            last["tool_choice"] = _choice(request.tool_choice)
        return b"".join((self._head(request), b",".join(encoded), b"],", encode_fields(last), b"}"))

    def _head(self, request: ModelRequest) -> bytes:
        key = (request.tools, request.system, request.temperature)
        if self._shared[0] != key:
            self._shared = (key, self._encoded_head(request))
        return self._shared[1]

    def _encoded_head(self, request: ModelRequest) -> bytes:
        options = self._target.options
        head: JsonObject = {"model": self._target.model, "stream": True}
        temperature = self._target.temperature(request.temperature)
        if temperature is not None and options.thinking_budget is None:
            head["temperature"] = temperature
        if options.reasoning_effort is not None:
            head["output_config"] = {"effort": options.reasoning_effort}
        head |= options.body
        mark = LONG_MARK if options.cache_ttl == "1h" else CACHE_MARK
        pieces = [b"{" + encode_fields(head)]
        if request.tools:
            tools = [encode(_tool(tool)) for tool in request.tools]
            pieces.append(b'"tools":[' + b",".join(_last_marked(tools, mark)) + b"]")
        system = [encode({"type": "text", "text": t}) for t in request.system if t.strip()]
        if system:
            pieces.append(b'"system":[' + b",".join(_last_marked(system, mark)) + b"]")
        pieces.append(b'"messages":[')
        return b",".join(pieces)

    def _thinking(self, max_tokens: int) -> JsonObject:
        """Last of all, as it depends on the room that the reply has."""
        match self._target.options.thinking_budget:
            case int(budget) if (room := min(budget, max_tokens - LEAST_ANSWER)) >= LEAST_THINKING:
                return {"thinking": {"type": "enabled", "budget_tokens": room}}
            case "adaptive":
                return {"thinking": {"type": "adaptive"}}
            case _:
                return {}


def _choice(choice: ToolChoice) -> JsonObject:
    match choice:
        case Only(name=name):
            return {"type": "tool", "name": name}
        case word:
            return {"type": word}


def pieces_of(turn: Turn, abilities: Abilities) -> tuple[Piece, ...]:
    """The turn's own side, then the results of its tool calls."""
    blocks: list[Block] = []
    results: list[Block] = []
    for part in turn.parts:
        match part.body:
            case Text(text=text) | Compaction(summary=text) if text.strip():
                blocks.append(Block(encode({"type": "text", "text": text})))
            case Reasoning(text=text, redacted=True) if text:
                blocks.append(
                    Block(encode({"type": "redacted_thinking", "data": text}), thinking=True)
                )
            case Reasoning(text=text, signature=str(signature)) if signature:
                thinking = {"type": "thinking", "thinking": text, "signature": signature}
                blocks.append(Block(encode(thinking), thinking=True))
            case ToolUse() as use:
                blocks.append(Block(encode(_use(use))))
                results.append(Block(encode(_result(use, abilities))))
            case _:
                pass  # what is for the record only
    if turn.message.role == "user":
        blocks = [block for block in blocks if not block.thinking]
    while blocks and blocks[-1].thinking:
        blocks.pop()
    sides: tuple[tuple[Side, list[Block]], ...] = ((turn.message.role, blocks), ("user", results))
    return tuple(Piece(s, tuple(b), _message(s, b, mark=False)) for s, b in sides if b)


def _messages(turns: Sequence[tuple[Piece, ...]]) -> Iterator[Piece]:
    """The pieces as the API wants them: sides alternate, the user begins and has the last word."""
    last: Piece | None = None
    for pieces in turns:
        for piece in pieces:
            if last is None:
                last = piece if piece.side == "user" else None
                if last is None:
                    yield _plain("(the conversation goes on)")
                    last = piece
            elif last.side == piece.side:
                blocks = last.blocks + piece.blocks
                last = Piece(piece.side, blocks, _message(piece.side, blocks, mark=False))
            else:
                yield last
                last = piece
    if last is not None:
        yield last
    if last is None or last.side == "assistant":
        yield _plain("(go on)")


def _plain(text: str) -> Piece:
    blocks = (Block(encode({"type": "text", "text": text})),)
    return Piece("user", blocks, _message("user", blocks, mark=False))


def _message(side: Side, blocks: Sequence[Block], *, mark: bool) -> bytes:
    contents = [block.json for block in blocks]
    if mark:
        place = max((i for i, block in enumerate(blocks) if not block.thinking), default=None)
        if place is not None:
            contents[place] = _marked(contents[place], CACHE_MARK)
    return b'{"role":"%s","content":[%s]}' % (side.encode(), b",".join(contents))


def _marked(block: bytes, mark: bytes) -> bytes:
    return block[:-1] + mark + b"}"


def _last_marked(blocks: Sequence[bytes], mark: bytes) -> list[bytes]:
    return [*blocks[:-1], _marked(blocks[-1], mark)]


def _tool(tool: ToolSpec) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    }


def _use(use: ToolUse) -> JsonObject:
    return {
        "type": "tool_use",
        "id": _legal_id(use.call_id),
        "name": use.name,
        "input": arguments(use.state),
    }


def _result(use: ToolUse, abilities: Abilities) -> JsonObject:
    text, failed = answer(use.state)
    seen = [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": image.data},
        }
        for image in pictures(use.state, abilities)
    ]
    result: JsonObject = {
        "type": "tool_result",
        "tool_use_id": _legal_id(use.call_id),
        "content": [{"type": "text", "text": text}, *seen] if seen else text,
    }
    return {**result, "is_error": True} if failed else result


def _legal_id(call_id: str) -> str:
    """The id itself, or a legal one in its place when another provider made it."""
    if _LEGAL_ID.fullmatch(call_id):
        return call_id
    digest = hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=12)
    return f"call_{digest.hexdigest()}"
