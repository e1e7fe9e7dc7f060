"""Codex's rollouts: `{timestamp, type, payload}` a line, with running totals of tokens.

`~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`. `token_count` repeats the totals of the session,
sometimes unchanged: what a request took is the difference to the last total. `input_tokens` has
the cached ones in it, `output_tokens` the reasoning.
"""

import json
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from harness_batch.messages import (
    Completed,
    FinishReason,
    PartBody,
    Reasoning,
    Running,
    Text,
    TokenUsage,
    ToolUse,
)
from harness_batch.transcripts.record import Called, Ending, Said, Transcript
from harness_batch.transcripts.values import Values, is_deep, lines

AGENT = "codex"
_KINDS = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}


def is_it(first: dict[str, Any]) -> bool:
    """Whether a file whose first lines are such objects is one of these."""
    return str(first.get("type")) in _KINDS and isinstance(first.get("payload"), dict)


def read(file: Path) -> tuple[Transcript, ...]:
    """The session of the file. Raises: FaultyInput."""
    rollout = _Rollout()
    for line in lines(file):
        payload = line.object("payload")
        if payload is not None:
            rollout.take(line, payload)
    meta = rollout.meta
    git = None if meta is None else meta.object("git")
    return (
        Transcript(
            agent=AGENT,
            id=(meta.text("id") if meta else None) or file.stem,
            said=rollout.said(),
            ending=rollout.ending,
            version=meta.text("cli_version") if meta else None,
            folder=meta.text("cwd") if meta else None,
            branch=git.text("branch") if git else None,
            commit=git.text("commit_hash") if git else None,
        ),
    )


@define
class _Rollout:
    """The session as its lines tell it."""

    meta: Values | None = None
    ending: Ending = "passed"
    _model: str = "unknown"
    _provider: str = "openai"
    _totals: TokenUsage = field(factory=TokenUsage)
    _said: list[Said] = field(factory=list)
    _open: Said | None = None
    """The reply under way, without its bodies."""
    _bodies: list[PartBody] = field(factory=list)
    _results: dict[str, str] = field(factory=dict)

    def take(self, line: Values, payload: Values) -> None:
        """One more line."""
        match line.text("type"):
            case "session_meta":
                self.meta = self.meta or payload
                self._provider = payload.text("model_provider") or self._provider
            case "turn_context":
                self._model = payload.text("model") or self._model
            case "response_item":
                self._item(line, payload)
            case "event_msg":
                self._event(line, payload)
            case _:
                pass  # kinds of later versions

    def _item(self, line: Values, item: Values) -> None:
        match item.text("type"):
            case "message":
                texts = [block.text("text") for block in item.objects("content")]
                body = Text(text="\n".join(text for text in texts if text))
                if item.text("role") == "assistant":
                    self._reply(line, body)
                elif item.text("role") == "user":
                    self._close()
                    name = f"user-{line.source.line}"
                    at = line.time("timestamp")
                    self._said.append(Said(id=name, role="user", at=at, bodies=(body,)))
            case "reasoning":
                texts = [block.text("text") for block in item.objects("summary")]
                self._reply(line, Reasoning(text="\n".join(text for text in texts if text)))
            case "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call":
                self._reply(line, _tool_use(item))
            case "function_call_output" | "custom_tool_call_output":
                self._results[item.need("call_id")] = _output(item.body.get("output"))
            case _:
                pass

    def _event(self, line: Values, event: Values) -> None:
        match event.text("type"):
            case "token_count":
                self._count(line, event.object("info"))
            case "turn_aborted":
                self.ending = "cancelled"
            case "error" | "stream_error":
                self.ending = "errored"
            case "agent_message" | "task_started":
                self.ending = "passed"
            case _:
                pass

    def _reply(self, line: Values, body: PartBody) -> None:
        if self._open is None:
            name = f"reply-{line.source.line}"
            self._open = Said(id=name, role="assistant", at=line.time("timestamp"))
        self._bodies.append(body)

    def _count(self, line: Values, info: Values | None) -> None:
        told = None if info is None else info.object("total_token_usage")
        if info is None or told is None:
            return
        totals = _usage(told)
        taken = _difference(totals, self._totals)
        if taken is None:  # counted anew, as after a resumed session
            last = info.object("last_token_usage")
            taken = totals if last is None else _usage(last)
        self._totals = totals
        if taken == TokenUsage():
            return
        raw = info.object("last_token_usage") or told
        call = Called(provider=self._provider, model=self._model, usage=taken, usage_raw=raw.body)
        if self._open is None:
            name = f"reply-{line.source.line}"
            self._open = Said(id=name, role="assistant", at=line.time("timestamp"))
        self._open = evolve(self._open, calls=(*self._open.calls, call))
        self._close()

    def _close(self) -> None:
        """The reply is complete: its request has been counted, or the user speaks again."""
        if self._open is not None:
            asks = any(isinstance(body, ToolUse) for body in self._bodies)
            finish: FinishReason = "tool_calls" if asks else "stop"
            self._said.append(evolve(self._open, bodies=tuple(self._bodies), finish=finish))
        self._open, self._bodies = None, []

    def said(self) -> tuple[Said, ...]:
        """All messages, tool calls with their results."""
        self._close()
        return tuple(
            evolve(one, bodies=tuple(self._answered(body) for body in one.bodies))
            for one in self._said
        )

    def _answered(self, body: PartBody) -> PartBody:
        if not isinstance(body, ToolUse) or body.call_id not in self._results:
            return body
        given = body.state.input if isinstance(body.state, Running) else {}
        state = Completed(input=given, title="", output=self._results[body.call_id])
        return ToolUse(call_id=body.call_id, name=body.name, state=state)


def _usage(usage: Values) -> TokenUsage:
    return TokenUsage(
        input=usage.whole("input_tokens"),
        cache_read=usage.whole("cached_input_tokens"),
        output=usage.whole("output_tokens"),
        reasoning=usage.whole("reasoning_output_tokens"),
    )


def _difference(now: TokenUsage, before: TokenUsage) -> TokenUsage | None:
    """None when a total has become smaller."""
    if now.input < before.input or now.output < before.output:
        return None
    return TokenUsage(
        input=now.input - before.input,
        cache_read=max(0, now.cache_read - before.cache_read),
        output=now.output - before.output,
        reasoning=max(0, now.reasoning - before.reasoning),
    )


def _tool_use(item: Values) -> ToolUse:
    name = item.text("name") or (item.text("type") or "").removesuffix("_call")
    given = item.body.get("arguments", item.body.get("input", item.body.get("action")))
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except (ValueError, RecursionError):
            value = None
        given = {"input": given} if value is None or is_deep(value, given) else value
    state = Running(input=given if isinstance(given, dict) else {"input": given})
    call_id = item.text("call_id") or f"call-{item.source.line}"
    return ToolUse(call_id=call_id, name=name, state=state)


def _output(output: object) -> str:
    match output:
        case str():
            return output
        case {"content": str(text)}:
            return text
        case list():
            texts = (one.get("text") for one in output if isinstance(one, dict))
            return "\n".join(text for text in texts if isinstance(text, str))
        case _:
            return "" if output is None else json.dumps(output)
