"""Claude Code's transcripts: a line for each content block, all lines of one reply with its usage.

`~/.claude/projects/PROJECT/SESSION.jsonl`. The blocks of one reply share `message.id`, and each
line repeats the usage of the request: it is counted once, the output as the last line tells it.
Lines of subagents (`isSidechain`) become child sessions.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import define, field

from harness_batch.messages import (
    Completed,
    Failed,
    FinishReason,
    PartBody,
    Reasoning,
    Running,
    Text,
    TokenUsage,
    ToolUse,
)
from harness_batch.transcripts.record import Called, Ending, Said, Transcript
from harness_batch.transcripts.values import Values, lines

AGENT = "claude-code"
_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def is_it(first: dict[str, Any]) -> bool:
    """Whether a file whose first lines are such objects is one of these."""
    kinds = {"user", "assistant", "summary", "system", "queue-operation", "file-history-snapshot"}
    return str(first.get("type")) in kinds and bool(
        {"sessionId", "leafUuid", "uuid", "messageId", "parentUuid"} & first.keys()
    )


def read(file: Path) -> tuple[Transcript, ...]:
    """The session of the file, then its subagents'. Raises: FaultyInput."""
    threads: dict[str | None, _Thread] = {}
    head: dict[str, str] = {}
    for line in lines(file):
        if line.body.get("type") not in ("user", "assistant"):
            continue
        for key in ("sessionId", "cwd", "version", "gitBranch"):
            if (value := line.text(key)) and key not in head:
                head[key] = value
        sidechain = line.body.get("isSidechain") is True
        thread = (line.text("agentId") or "sidechain") if sidechain else None
        threads.setdefault(thread, _Thread()).take(line)
    session = head.get("sessionId", file.stem)
    only_child = None not in threads
    return tuple(
        Transcript(
            agent=AGENT,
            id=session if name is None else f"{session}/{name}",
            parent_id=session if name is not None and not only_child else None,
            said=thread.said(),
            ending=thread.ending,
            role=name,
            version=head.get("version"),
            folder=head.get("cwd"),
            branch=head.get("gitBranch"),
        )
        for name, thread in sorted(threads.items(), key=lambda one: one[0] or "")
    )


@define
class _Reply:
    """The lines of one reply so far."""

    first: Values
    message: Values
    bodies: list[PartBody] = field(factory=list)
    cost: Values | None = None


@define
class _Thread:
    """One conversation, in the order of its lines."""

    _order: list[str] = field(factory=list)
    _users: dict[str, Said] = field(factory=dict)
    _replies: dict[str, _Reply] = field(factory=dict)
    _results: dict[str, tuple[str, bool]] = field(factory=dict)
    ending: Ending = "passed"

    def take(self, line: Values) -> None:
        """One more line."""
        message = line.object("message")
        if message is None:
            raise line.source.fault("`message` is missing")
        if line.body["type"] == "assistant":
            self._reply(line, message)
        else:
            self._user(line, message)

    def _reply(self, line: Values, message: Values) -> None:
        key = message.text("id") or line.need("uuid")
        if key not in self._replies:
            self._order.append(key)
            self._replies[key] = _Reply(line, message)
        reply = self._replies[key]
        reply.message = message  # the newest knows the most: its usage and stop reason
        reply.bodies += _bodies(message)
        failed = line.body.get("isApiErrorMessage") is True
        self.ending = "errored" if failed else "passed"

    def _user(self, line: Values, message: Values) -> None:
        bodies: list[PartBody] = []
        content = message.body.get("content")
        if isinstance(content, str):
            bodies.append(Text(text=content))
        else:
            for block in message.objects("content"):
                if block.text("type") == "tool_result":
                    told = (_flat(block.body.get("content")), block.body.get("is_error") is True)
                    self._results[block.need("tool_use_id")] = told
                elif text := block.text("text"):
                    bodies.append(Text(text=text))
        if any(isinstance(b, Text) and "[Request interrupted by user" in b.text for b in bodies):
            self.ending = "cancelled"
        if bodies:
            key = line.need("uuid")
            self._order.append(key)
            self._users[key] = Said(
                id=key, role="user", at=line.time("timestamp"), bodies=tuple(bodies)
            )

    def said(self) -> tuple[Said, ...]:
        """All messages, tool calls with their results."""
        return tuple(
            self._users[key] if key in self._users else self._finished(key, self._replies[key])
            for key in dict.fromkeys(self._order)
        )

    def _finished(self, key: str, reply: _Reply) -> Said:
        call = _called(reply)
        return Said(
            id=key,
            role="assistant",
            at=reply.first.time("timestamp"),
            bodies=tuple(self._answered(body) for body in reply.bodies),
            calls=() if call is None else (call,),
            finish=_FINISH.get(reply.message.text("stop_reason") or "", "unknown"),
            error="provider" if call is not None and call.error_kind else None,
        )

    def _answered(self, body: PartBody) -> PartBody:
        if not isinstance(body, ToolUse) or body.call_id not in self._results:
            return body
        text, failed = self._results[body.call_id]
        given = body.state.input if isinstance(body.state, Running) else {}
        state = (
            Failed(input=given, error=text)
            if failed
            else Completed(input=given, title="", output=text)
        )
        return ToolUse(call_id=body.call_id, name=body.name, state=state)


def _bodies(message: Values) -> Iterable[PartBody]:
    content = message.body.get("content")
    if isinstance(content, str):
        yield Text(text=content)
        return
    for block in message.objects("content"):
        match block.text("type"):
            case "text":
                yield Text(text=block.text("text") or "")
            case "thinking":
                yield Reasoning(text=block.text("thinking") or "")
            case "tool_use":
                given = block.object("input")
                state = Running(input={} if given is None else given.body)
                yield ToolUse(call_id=block.need("id"), name=block.need("name"), state=state)
            case _:
                pass  # images, and kinds of later versions


def _called(reply: _Reply) -> Called | None:
    """The request behind a reply; None for a message that Claude Code made up itself."""
    model = reply.message.text("model") or "unknown"
    if model == "<synthetic>":
        return None
    usage = reply.message.object("usage")
    return Called(
        provider="anthropic",
        model=model,
        usage=None if usage is None else _usage(usage),
        usage_raw=None if usage is None else usage.body,
        response_id=reply.message.text("id"),
        reported_usd=reply.first.money("costUSD"),
    )


def _usage(usage: Values) -> TokenUsage:
    read, written = (
        usage.whole("cache_read_input_tokens"),
        usage.whole("cache_creation_input_tokens"),
    )
    split = usage.object("cache_creation")
    hour = 0 if split is None else min(written, split.whole("ephemeral_1h_input_tokens"))
    return TokenUsage(
        input=usage.whole("input_tokens") + read + written,
        cache_read=read,
        cache_write_5m=written - hour,
        cache_write_1h=hour,
        output=usage.whole("output_tokens"),
    )


def _flat(content: object) -> str:
    """A tool's result as text."""
    match content:
        case str():
            return content
        case list():
            texts = (one.get("text") for one in content if isinstance(one, dict))
            return "\n".join(text for text in texts if isinstance(text, str))
        case _:
            return ""
