"""Replies out of events: odd servers understood, broken ones named."""

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from httpx_sse import ServerSentEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.errors import NetworkFailure, ProtocolBroken, ProviderError
from harness_batch.messages import TokenUsage
from harness_batch.models.anthropic import AnthropicReply
from harness_batch.models.openai_chat import OpenAiReply
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.models.sse import EventDecoder
from harness_batch.models.streaming import ReplyReader, StreamError
from wire.rendering import events_of
from wire.script import Call, Delivery, Redacted, Reply, Say, Think, Usage


def read(reader: ReplyReader, events: Sequence[ServerSentEvent]) -> list[LlmEvent]:
    found: list[LlmEvent] = []
    for event in events:
        if not reader.finished:
            found.extend(reader.read(event) or ())
    return found if reader.finished else [*found, *reader.end()]


def anthropic(reply: Reply) -> list[LlmEvent]:
    events = events_of(reply, "anthropic", 0, "m")
    return read(AnthropicReply(), [ServerSentEvent(e.name, e.data) for e in events])


def openai(reply: Reply) -> list[LlmEvent]:
    events = events_of(reply, "openai", 0, "m")
    return read(OpenAiReply(), [ServerSentEvent(e.name, e.data) for e in events])


def chunks(*documents: Any) -> list[LlmEvent]:
    events = [ServerSentEvent(data=json.dumps(document)) for document in documents]
    return read(OpenAiReply(), events)


def delta(reason: str | None = None, **content: Any) -> Any:
    return {"choices": [{"index": 0, "delta": content, "finish_reason": reason}]}


def calling(*deltas: Any) -> list[tuple[str, str]]:
    """Name and arguments of the calls that these tool_calls deltas make."""
    events = chunks(*(delta(tool_calls=[d]) for d in deltas), delta("tool_calls"))
    streamed: dict[str, str] = {}
    for event in events:
        if isinstance(event, ToolInputStart):
            streamed[event.call_id] = ""
        elif isinstance(event, ToolInputDelta):
            streamed[event.call_id] += event.json
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert len({call.call_id for call in calls}) == len(calls)
    assert {c.call_id: c.arguments for c in calls if c.call_id in streamed} == {
        key: value or "{}" for key, value in streamed.items()
    }
    return [(call.name, call.arguments) for call in calls]


def fn(name: str | None = None, arguments: Any = None, **more: Any) -> Any:
    function = {"name": name, "arguments": arguments}
    return {"function": {k: v for k, v in function.items() if v is not None}, **more}


@pytest.mark.parametrize(
    ("deltas", "calls"),
    [
        # the rule book
        (
            [fn("a", "", index=0, id="x"), fn(None, '{"k":', index=0), fn(None, "1}", index=0)],
            [("a", '{"k":1}')],
        ),
        # interleaved
        (
            [
                fn("a", "", index=0, id="x"),
                fn("b", "", index=1, id="y"),
                fn(arguments='{"a"', index=0),
                fn(arguments='{"b"', index=1),
                fn(arguments=":1}", index=0),
                fn(arguments=":2}", index=1),
            ],
            [("a", '{"a":1}'), ("b", '{"b":2}')],
        ),
        # whole calls, no index
        ([fn("a", "{}", id="x"), fn("b", "{}", id="y")], [("a", "{}"), ("b", "{}")]),
        # whole calls, neither index nor id
        ([fn("a", '{"k":1}'), fn("a", '{"k":2}')], [("a", '{"k":1}'), ("a", '{"k":2}')]),
        # no index, the rest without anything
        (
            [fn("a", '{"k"', id="x"), fn(arguments=":1}"), fn("b", "{}", id="y")],
            [("a", '{"k":1}'), ("b", "{}")],
        ),
        # one index for all, ids differ
        (
            [
                fn("a", "", index=0, id="x"),
                fn(arguments='{"k":1}', index=0, id=""),
                fn("b", "", index=0, id="y"),
                fn(arguments='{"k":2}', index=0),
            ],
            [("a", '{"k":1}'), ("b", '{"k":2}')],
        ),
        # one index for all, whole calls, no ids
        (
            [fn("a", '{"k":1}', index=0), fn("b", '{"k":2}', index=0)],
            [("a", '{"k":1}'), ("b", '{"k":2}')],
        ),
        # everything repeated
        (
            [fn("a", '{"k"', index=0, id="x"), fn("a", ":1}", index=0, id="x")],
            [("a", '{"k":1}')],
        ),
        # the name again, without id
        ([fn("a", '{"k"', index=0), fn("a", ":1}", index=0)], [("a", '{"k":1}')]),
        # a new id in each delta of one call
        (
            [fn("a", '{"k"', index=0, id="x"), fn(arguments=":1}", index=0, id="y")],
            [("a", '{"k":1}')],
        ),
        # an id that comes late
        ([fn("a", '{"k"', index=0), fn(arguments=":1}", index=0, id="y")], [("a", '{"k":1}')]),
        # head with a wrong index, tail with the right one
        (
            [
                fn("a", "{}", index=0, id="x"),
                fn("b", "", index=0, id="y"),
                fn(arguments='{"k":2}', index=1, id="y"),
            ],
            [("a", "{}"), ("b", '{"k":2}')],
        ),
        # arguments as an object, none at all, null
        ([fn("a", {"k": 1}, index=0, id="x")], [("a", '{"k":1}')]),
        ([fn("a", index=0, id="x")], [("a", "{}")]),
        ([{"index": 0, "id": "x", "function": {"name": "a", "arguments": None}}], [("a", "{}")]),
        # a name in pieces
        (
            [fn("get_", index=0), fn("weather", index=0), fn(arguments="{}", index=0)],
            [("get_weather", "{}")],
        ),
        # an id that is a number
        ([fn("a", "{}", index=0, id=0), fn("b", "{}", index=1, id=1)], [("a", "{}"), ("b", "{}")]),
        # arguments that are not JSON are the model's fault, not the server's
        ([fn("a", "{oops", index=0, id="x")], [("a", "{oops")]),
    ],
)  # fmt: skip
def test_tool_calls_are_put_together_however_a_server_cuts_them(
    deltas: list[Any], calls: list[tuple[str, str]]
) -> None:
    assert calling(*deltas) == calls


@pytest.mark.parametrize(
    "style", ["standard", "no-index", "same-index", "no-id", "repeated", "new-ids"]
)
@pytest.mark.parametrize("cut", ["pieces", "whole"])
def test_parallel_calls_arrive_in_every_style(style: Any, cut: Any) -> None:
    delivery = Delivery(tool_deltas=style, arguments=cut)
    calls = [Call("bash", {"command": "ls -la"}), Call("read", {"file_path": "x"}), Call("bash")]
    found = [e for e in openai(Reply(*calls, delivery=delivery)) if isinstance(e, ToolCall)]
    assert [(e.name, json.loads(e.arguments)) for e in found] == [
        (call.name, call.arguments) for call in calls
    ]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "unknown"),
        ("something_new", "unknown"),
    ],
)
def test_anthropics_stop_reasons_are_ours(word: str, reason: str) -> None:
    finish = anthropic(Reply(Say("x"), stop=word))[-1]
    assert isinstance(finish, Finish)
    assert finish.reason == reason


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("function_call", "tool_calls"),
        ("something_new", "unknown"),
    ],
)
def test_openais_finish_reasons_are_ours(word: str, reason: str) -> None:
    finish = openai(Reply(Say("x"), stop=word))[-1]
    assert isinstance(finish, Finish)
    assert finish.reason == reason


def test_stop_with_calls_is_tool_calls() -> None:
    for found in (
        openai(Reply(Call("bash"), stop="stop")),
        anthropic(Reply(Call("bash"), stop="end_turn")),
    ):
        assert isinstance(found[-1], Finish)
        assert found[-1].reason == "tool_calls"


def test_anthropics_input_is_added_up_and_the_raw_figures_are_kept() -> None:
    usage = Usage(
        input=10, output=7, cache_read=100, cache_write_5m=20, cache_write_1h=3, reasoning=5
    )
    finish = anthropic(Reply(Say("x"), usage=usage))[-1]
    assert isinstance(finish, Finish)
    assert finish.usage == TokenUsage(
        input=133, cache_read=100, cache_write_5m=20, cache_write_1h=3, output=7, reasoning=5
    )
    assert finish.usage_raw["input_tokens"] == 10


def test_openais_input_is_the_total_already() -> None:
    usage = Usage(input=10, output=7, cache_read=100, reasoning=5, cost=0.0125)
    finish = openai(Reply(Say("x"), usage=usage))[-1]
    assert isinstance(finish, Finish)
    assert finish.usage == TokenUsage(input=110, cache_read=100, output=7, reasoning=5)
    assert finish.provider_cost_usd == Decimal("0.0125")


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4},
            TokenUsage(input=9, output=1, cache_read=4),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None},
            TokenUsage(input=9, output=1),
        ),
        (
            {"prompt_tokens": 9, "total_tokens": 12},
            TokenUsage(input=9, output=3, reasoning=3),
        ),
        *(
            (odd, None)
            for odd in (
                {},
                {"total_tokens": 5},
                {"prompt_tokens": 9},
                {"prompt_tokens": "9", "completion_tokens": "1"},
                {"prompt_tokens": 9, "completion_tokens": -4},
                {"prompt_tokens": math.nan, "completion_tokens": 4},
                {"prompt_tokens": 9, "completion_tokens": math.inf},
                {"prompt_tokens": 10**12, "completion_tokens": 1},
                {"prompt_tokens": True, "completion_tokens": 1},
            )
        ),
    ],
)
def test_odd_usage_is_read_as_far_as_it_makes_sense(raw: Any, usage: TokenUsage | None) -> None:
    # What is not told is unknown: a count of 0 would make the call free.
    for place in ({"usage": raw}, {"x_groq": {"usage": raw}}):
        finish = chunks(delta("stop", content="x"), {"choices": [], **place})[-1]
        assert isinstance(finish, Finish)
        assert finish.usage == usage


def test_missing_usage_is_not_zero_usage() -> None:
    reply = Reply(Say("x"), delivery=Delivery(usage=False))
    for found in (openai(reply), anthropic(reply)):
        assert isinstance(found[-1], Finish)
        assert found[-1].usage is None


def test_hidden_thinking_comes_as_opaque_data() -> None:
    found = anthropic(Reply(Redacted("b3BhcXVl"), Say("x")))
    assert found[1:4] == [
        ReasoningStart("block_0", redacted=True),
        ReasoningDelta("block_0", "b3BhcXVl"),
        ReasoningEnd("block_0", None),
    ]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_thinking_under_either_name_comes_before_the_text(key: str) -> None:
    reply = Reply(Think("hm, hm, hm"), Say("so"), delivery=Delivery(reasoning_key=key))
    found = openai(reply)
    thought = "".join(e.text for e in found if isinstance(e, ReasoningDelta))
    assert thought == "hm, hm, hm"
    kinds = [type(e) for e in found]
    assert kinds.index(ReasoningEnd) < kinds.index(TextDelta)


def test_thinking_that_is_sent_under_both_names_is_heard_once() -> None:
    found = chunks(delta(reasoning_content="hm", reasoning="hm"), delta("stop", content="x"))
    assert [e.text for e in found if isinstance(e, ReasoningDelta)] == ["hm"]


def test_a_refusal_is_said_and_is_no_success() -> None:
    found = chunks(delta(refusal="I will not."), delta("stop"))
    assert [e.text for e in found if isinstance(e, TextDelta)] == ["I will not."]
    assert isinstance(found[-1], Finish)
    assert found[-1].reason == "content_filter"


def test_unknown_events_and_blocks_are_passed_over_and_counted() -> None:
    events = [
        {"type": "message_start", "message": {}},
        {"type": "weather"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    found = read(AnthropicReply(), [ServerSentEvent(data=json.dumps(e)) for e in events])
    assert [e.text for e in found if isinstance(e, TextDelta)] == ["x"]
    assert isinstance(found[-1], Finish)
    assert found[-1].skipped_events == 5


@pytest.mark.parametrize(
    "event",
    [
        ServerSentEvent("error", '{"type": "server_error", "code": 500, "message": "gone"}'),
        ServerSentEvent("error", '{"type": "error", "error": {"message": "gone"}}'),
        ServerSentEvent("message", '{"error": {"type": "api_error", "message": "gone"}}'),
    ],
)
def test_anthropics_imitators_put_errors_in_other_places(event: ServerSentEvent) -> None:
    with pytest.raises(StreamError, match="gone"):
        read(AnthropicReply(), [event])


def test_a_reply_without_its_end_mark_is_no_reply_unless_the_finish_reason_came() -> None:
    cut = [delta(content="half a"), delta(content=" sentence")]
    with pytest.raises(NetworkFailure):
        chunks(*cut)
    assert isinstance(chunks(*cut, delta("stop"))[-1], Finish)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"error": {"code": 502, "message": "gone"}, "choices": []}, "gone"),
        ({"error": "gone"}, "gone"),
        ({"choices": [{"delta": {}, "finish_reason": "error"}]}, "broke the reply off"),
        ({"choices": [{"delta": {}, "error": {"message": "gone"}}]}, "gone"),
    ],
)
def test_an_error_in_place_of_a_chunk_is_one(error: Any, said: str) -> None:
    with pytest.raises(StreamError, match=said):
        chunks(delta(content="x"), error)


@pytest.mark.parametrize(
    "data",
    [
        "{oops",
        "[]",
        "12",
        "[" * 100_000,
        '{"choices": [1]}',
        '{"choices": [{"delta": []}]}',
        '{"choices": [{"delta": {"tool_calls": 1}}]}',
        '{"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "{}"}}]}}]}',
        '{"choices": [{"delta": {"content": 5}}]}',
    ],
)
def test_a_chunk_that_makes_no_sense_breaks_the_protocol(data: str) -> None:
    with pytest.raises(ProtocolBroken):
        read(OpenAiReply(), [ServerSentEvent(data=data)])


@pytest.mark.parametrize(
    "data",
    [
        "{oops",
        '{"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta"}}',
        '{"type": "content_block_delta", "delta": {}}',
        '{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}}',
        '{"type": "content_block_start", "index": 0, "content_block": []}',
        '{"type": "message_start", "message": 5}',
        '{"type": "message_stop"}',
    ],
)
def test_an_event_that_makes_no_sense_breaks_the_protocol(data: str) -> None:
    with pytest.raises(ProtocolBroken):
        read(AnthropicReply(), [ServerSentEvent(data=data)])


WORDS = st.sampled_from(
    [
        *("type", "index", "delta", "content_block", "message", "usage", "error", "id", "name"),
        *("choices", "finish_reason", "tool_calls", "function", "arguments", "content", "text"),
        *("stop_reason", "input", "partial_json", "reasoning_content"),
    ]
)
KINDS = st.sampled_from(
    [
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop", "error", "ping", "text", "tool_use", "thinking"),
        *("text_delta", "input_json_delta", "stop", "end_turn"),
    ]
)
VALUES = st.recursive(
    st.none() | st.integers(-1, 2) | KINDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(WORDS, VALUES, max_size=6), max_size=5), st.booleans())
def test_any_documents_give_events_or_a_typed_error(documents: list[Any], ours: bool) -> None:
    reader: ReplyReader = OpenAiReply() if ours else AnthropicReply()
    try:
        found = read(reader, [ServerSentEvent(data=json.dumps(d)) for d in documents])
    except (ProviderError, StreamError):
        return
    assert isinstance(found[-1], Finish)


@settings(deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_give_events_or_a_typed_error(stream: bytes, ours: bool) -> None:
    reader: ReplyReader = OpenAiReply() if ours else AnthropicReply()
    decoder = EventDecoder()
    try:
        found = read(reader, [*decoder.feed(stream), *decoder.end()])
    except (ProviderError, StreamError):
        return
    assert isinstance(found[-1], Finish)
