"""Gemini CLI's recorded chats: one JSON object with all messages.

`~/.gemini/tmp/PROJECT/chats/session-*.json`. `tokens.input` has the cached ones in it, thoughts
and the prompts of tools are counted beside output and input.
"""

from pathlib import Path
from typing import Any

from harness_batch.messages import Completed, Failed, PartBody, Reasoning, Text, TokenUsage, ToolUse
from harness_batch.transcripts.record import Called, Ending, Said, Transcript
from harness_batch.transcripts.values import Values

AGENT = "gemini-cli"


def is_it(document: dict[str, Any]) -> bool:
    """Whether this is one of these."""
    return isinstance(document.get("messages"), list) and "sessionId" in document


def read(file: Path, document: Values) -> tuple[Transcript, ...]:
    """The session of the file. Raises: FaultyInput."""
    said: list[Said] = []
    ending: Ending = "passed"
    for message in document.objects("messages"):
        match message.text("type"):
            case "user":
                body = Text(text=_text(message.body.get("content")))
                at = message.time("timestamp")
                said.append(Said(id=message.need("id"), role="user", at=at, bodies=(body,)))
            case "gemini":
                said.append(_reply(message))
                ending = "passed"
            case "error":
                ending = "errored"
            case _:
                pass  # info, warnings: nobody's words
    return (
        Transcript(
            agent=AGENT,
            id=document.text("sessionId") or file.stem,
            said=tuple(said),
            ending=ending,
        ),
    )


def _reply(message: Values) -> Said:
    bodies: list[PartBody] = [
        Reasoning(text=f"{thought.text('subject') or ''}\n{thought.text('description') or ''}")
        for thought in message.objects("thoughts")
    ]
    if text := _text(message.body.get("content")):
        bodies.append(Text(text=text))
    tools = [_tool_use(call) for call in message.objects("toolCalls")]
    tokens = message.object("tokens")
    call = Called(
        provider="google",
        model=message.text("model") or "unknown",
        usage=None if tokens is None else _usage(tokens),
        usage_raw=None if tokens is None else tokens.body,
    )
    return Said(
        id=message.need("id"),
        role="assistant",
        at=message.time("timestamp"),
        bodies=(*bodies, *tools),
        calls=(call,),
        finish="tool_calls" if tools else "stop",
    )


def _usage(tokens: Values) -> TokenUsage:
    return TokenUsage(
        input=tokens.whole("input") + tokens.whole("tool"),
        cache_read=tokens.whole("cached"),
        output=tokens.whole("output") + tokens.whole("thoughts"),
        reasoning=tokens.whole("thoughts"),
    )


def _tool_use(call: Values) -> ToolUse:
    given = call.object("args")
    arguments = {} if given is None else given.body
    outputs = [
        response
        for result in call.objects("result")
        if (answer := result.object("functionResponse")) is not None
        and (response := answer.object("response")) is not None
    ]
    text = "\n".join(str(o.body.get("output", o.body.get("error", ""))) for o in outputs)
    good = call.text("status") == "success"
    state = (
        Completed(input=arguments, title="", output=text)
        if good
        else Failed(input=arguments, error=text or call.text("status") or "failed")
    )
    return ToolUse(call_id=call.need("id"), name=call.need("name"), state=state)


def _text(content: object) -> str:
    match content:
        case str():
            return content
        case list():
            texts = (one if isinstance(one, str) else one.get("text") for one in content
                     if isinstance(one, str | dict))  # fmt: skip
            return "".join(text for text in texts if isinstance(text, str))
        case _:
            return ""
