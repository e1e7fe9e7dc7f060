"""The test server refuses what the real APIs refuse: else it would prove nothing."""

from typing import Any

import pytest

from wire.validation import anthropic_fault, openai_fault

SAY = {"type": "text", "text": "x"}
USE = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "y"}
CALL = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}


def claude(*messages: tuple[str, list[Any]], **more: Any) -> Any:
    said = [{"role": role, "content": blocks} for role, blocks in messages]
    return {"model": "m", "max_tokens": 9, "stream": True, "messages": said, **more}


def gpt(*messages: Any, **more: Any) -> Any:
    return {"model": "m", "stream": True, "messages": list(messages), **more}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (claude(("user", [SAY])), None),
        (claude(("user", [SAY]), ("assistant", [USE]), ("user", [RESULT, SAY])), None),
        (claude(("user", [SAY]), ("assistant", [USE]), ("user", [SAY])), "without `tool_result`"),
        (claude(("user", [SAY]), ("assistant", [USE]), ("user", [SAY, RESULT])), "immediately"),
        (claude(("user", [RESULT])), "unexpected results"),
        (claude(("user", [SAY]), ("user", [SAY])), "alternate"),
        (claude(("assistant", [SAY])), "alternate|prefill"),
        (claude(("user", [SAY]), ("assistant", [SAY])), "prefill"),
        (claude(("user", [{"type": "text", "text": " "}])), "non-empty"),
        (claude(("user", [])), "non-empty content"),
        (claude(("user", [SAY]), max_tokens=0), "max_tokens"),
        (claude(("user", [SAY]), extra=1), "Extra inputs"),
        (claude(("user", [SAY]), tool_choice={"type": "none"}), "tool_choice"),
        (claude(("user", [{**SAY, "cache_control": {}}] * 5)), "maximum of 4"),
        (claude(("user", [SAY]), tools=[{"name": "a b", "input_schema": {}}]), "pattern"),
    ],
)
def test_anthropics_rules(body: Any, fault: str | None) -> None:
    check(anthropic_fault(body), fault)


USER = {"role": "user", "content": "x"}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOOL = {"role": "tool", "tool_call_id": "a", "content": "y"}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (gpt(USER), None),
        (gpt(USER, ASKS, TOOL), None),
        (gpt(USER, ASKS, USER), "must be followed by tool messages"),
        (gpt(USER, ASKS), "last message"),
        (gpt(USER, TOOL), "must follow"),
        (gpt(USER, USER), "alternate"),
        (gpt(USER, {"role": "assistant", "content": None}), "got null"),
        (gpt({"role": "robot", "content": "x"}), "invalid value"),
        (gpt(USER, tools=[]), "too short"),
        (gpt(USER, max_tokens=1, max_completion_tokens=1), "at the same time"),
        (gpt(), "at least one message"),
    ],
)
def test_openais_rules(body: Any, fault: str | None) -> None:
    check(openai_fault(body), fault)


def check(found: str | None, expected: str | None) -> None:
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert any(word in found for word in expected.split("|")), found
