"""Replies of the Responses API out of events: recorded streams, odd servers, broken ones."""

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from httpx_sse import ServerSentEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.errors import NetworkFailure, ProtocolBroken, ProviderError
from harness_batch.messages import TokenUsage
from harness_batch.models.openai_responses import ResponsesReply
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.models.sse import EventDecoder
from harness_batch.models.streaming import StreamError
from wire.rendering import events_of
from wire.script import Call, Delivery, Redacted, Reply, Say, Think, Usage

STREAMS = Path(__file__).parent / "streams"


def read(events: Sequence[ServerSentEvent]) -> list[LlmEvent]:
    reader = ResponsesReply()
    found: list[LlmEvent] = []
    for event in events:
        if not reader.finished:
            found.extend(reader.read(event) or ())
    return found if reader.finished else [*found, *reader.end()]


def heard(*documents: Any) -> list[LlmEvent]:
    return read([ServerSentEvent(data=json.dumps(document)) for document in documents])


def rendered(reply: Reply) -> list[LlmEvent]:
    events = events_of(reply, "responses", 0, "m")
    return read([ServerSentEvent(e.name, e.data) for e in events])


def streamed(name: str) -> list[LlmEvent]:
    decoder = EventDecoder()
    return read([*decoder.feed((STREAMS / name).read_bytes()), *decoder.end()])


def finish_of(found: Sequence[LlmEvent]) -> Finish:
    assert isinstance(found[-1], Finish)
    return found[-1]


def texts(found: Sequence[LlmEvent]) -> str:
    return "".join(e.text for e in found if isinstance(e, TextDelta))


def calls(found: Sequence[LlmEvent]) -> list[tuple[str, str]]:
    return [(e.name, e.arguments) for e in found if isinstance(e, ToolCall)]


def added(item: Any, **more: Any) -> Any:
    return {"type": "response.output_item.added", "item": item, **more}


def done(item: Any, **more: Any) -> Any:
    return {"type": "response.output_item.done", "item": item, **more}


def more(kind: str, delta: str, **place: Any) -> Any:
    return {"type": f"response.{kind}.delta", "delta": delta, **place}


def ended(kind: str = "completed", **response: Any) -> Any:
    return {"type": f"response.{kind}", "response": response}


MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "bash"}


def test_openais_stream_with_reasoning_and_a_call_is_read_whole() -> None:
    found = streamed("openai_reasoning_and_call.sse")
    assert isinstance(found[0], ReplyStarted)
    assert found[0].response_id == "resp_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b"
    thought = "".join(e.text for e in found if isinstance(e, ReasoningDelta))
    assert thought == "**Looking at the folder**\n\nI list it first.\n\n**Then reading**"
    (end,) = (e for e in found if isinstance(e, ReasoningEnd))
    assert json.loads(end.signature or "") == {
        "id": "rs_68af4030baa48193b0b43b4c2a176a1a05438e46b5f69a3b",
        "encrypted_content": "gAAAAABor0AxSealedAtTheEnd==",
    }
    assert texts(found) == "I look first."
    assert calls(found) == [("bash", '{"command":"ls -la"}')]
    finish = finish_of(found)
    assert finish.reason == "tool_calls"
    assert finish.usage == TokenUsage(input=372, cache_read=256, output=61, reasoning=41)
    assert finish.response_model == "gpt-5.1-2025-11-13"
    assert finish.skipped_events == 0


def test_llama_cpps_stream_without_indices_is_read_whole() -> None:
    found = streamed("llama_cpp_calls.sse")
    whole = ("read", '{"file_path": "file_path.txt"}')
    assert calls(found) == [whole, whole, whole, ("read", '{"file_path": "')]
    assert finish_of(found).reason == "tool_calls"
    assert finish_of(found).usage == TokenUsage(input=148, output=60)


@pytest.mark.parametrize(
    ("documents", "found"),
    [
        # no index
        (
            [added(CALL), more("function_call_arguments", '{"a":1}', item_id="fc_1"), done(CALL)],
            [("bash", '{"a":1}')],
        ),
        # another id in each event
        (
            [
                added(CALL, output_index=0),
                more("function_call_arguments", '{"a"', item_id="x", output_index=0),
                more("function_call_arguments", ":1}", item_id="y", output_index=0),
                done({**CALL, "id": "z"}, output_index=0),
            ],
            [("bash", '{"a":1}')],
        ),
        # one index for all
        (
            [
                added(CALL, output_index=0),
                added({**CALL, "id": "fc_2", "call_id": "call_2"}, output_index=0),
                more("function_call_arguments", '{"a":1}', item_id="fc_1", output_index=0),
                more("function_call_arguments", '{"b":2}', item_id="fc_2", output_index=0),
            ],
            [("bash", '{"a":1}'), ("bash", '{"b":2}')],
        ),
        # neither index nor id
        ([added(CALL), more("function_call_arguments", "{}")], [("bash", "{}")]),
        # no deltas, the arguments as an object
        ([done({**CALL, "arguments": {"a": 1}})], [("bash", '{"a":1}')]),
        # only the event that says they are done
        (
            [
                added(CALL, output_index=0),
                {
                    "type": "response.function_call_arguments.done",
                    "output_index": 0,
                    "arguments": "{}",
                },
            ],
            [("bash", "{}")],
        ),
        # the name at the end
        (
            [added({**CALL, "name": ""}), more("function_call_arguments", "{}"), done(CALL)],
            [("bash", "{}")],
        ),
    ],
)
def test_calls_are_put_together_however_a_server_numbers_them(
    documents: list[Any], found: list[tuple[str, str]]
) -> None:
    events = heard(*documents, ended())
    assert calls(events) == found
    streamed: dict[str, str] = {}
    for event in events:
        if isinstance(event, ToolInputStart):
            streamed[event.call_id] = ""
        elif isinstance(event, ToolInputDelta):
            streamed[event.call_id] += event.json
    assert len(streamed) == len(found)


def test_a_reply_that_comes_whole_in_its_last_event_is_read() -> None:
    part = {"type": "output_text", "text": "Hello."}
    found = heard(ended(output=[{**MESSAGE, "content": [part]}, {**CALL, "arguments": "{}"}]))
    assert texts(found) == "Hello."
    assert calls(found) == [("bash", "{}")]


def test_a_message_without_deltas_is_read_from_its_end() -> None:
    part = {"type": "output_text", "text": "Hello."}
    found = heard(added(MESSAGE), done({**MESSAGE, "content": [part]}), ended())
    assert [type(e) for e in found if not isinstance(e, ReplyStarted)] == [
        TextStart,
        TextDelta,
        TextEnd,
        Finish,
    ]


def test_sealed_reasoning_without_words_is_kept() -> None:
    found = rendered(Reply(Redacted("c2VhbGVk"), Say("so")))
    (end,) = (e for e in found if isinstance(e, ReasoningEnd))
    assert json.loads(end.signature or "")["encrypted_content"] == "c2VhbGVk"
    assert not [e for e in found if isinstance(e, ReasoningDelta)]


def test_reasoning_that_is_not_sealed_has_words_and_no_signature() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": []}
    found = heard(added(item), more("reasoning_text", "hm", item_id="rs_1"), done(item), ended())
    assert ReasoningEnd("item_0", None) in found


@pytest.mark.parametrize(
    ("word", "reason"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter")],
)
def test_incomplete_replies_say_why(word: str, reason: str) -> None:
    assert finish_of(rendered(Reply(Say("half a"), stop=word))).reason == reason


def test_an_incomplete_reply_of_unknown_reason_is_no_stop() -> None:
    found = heard(ended("incomplete", incomplete_details={"reason": "the weather"}))
    assert finish_of(found).reason == "unknown"


def test_a_call_that_was_cut_off_is_not_to_be_run() -> None:
    arguments = more("function_call_arguments", '{"command": "rm -rf x', item_id="fc_1")
    cut_off = done({**CALL, "status": "incomplete", "arguments": '{"command": "rm -rf x'})
    why = {"reason": "max_output_tokens"}
    for documents in ([added(CALL), arguments], [added(CALL), arguments, cut_off]):
        found = heard(*documents, ended("incomplete", incomplete_details=why))
        assert calls(found) == []
        assert finish_of(found).reason == "length"


def test_a_refusal_is_said_and_is_no_success() -> None:
    declined = {"type": "refusal", "refusal": "I will not."}
    streamed = [added(MESSAGE), more("refusal", "I will not.", item_id="msg_1")]
    for documents in (streamed, [done({**MESSAGE, "content": [declined]})]):
        found = heard(*documents, ended())
        assert texts(found) == "I will not."
        assert finish_of(found).reason == "content_filter"


def test_usage_holds_cache_and_reasoning_and_the_raw_figures() -> None:
    usage = Usage(input=10, output=7, cache_read=100, cache_write_5m=20, reasoning=5, cost=0.0125)
    finish = finish_of(rendered(Reply(Say("x"), usage=usage)))
    assert finish.usage == TokenUsage(
        input=130, cache_read=100, cache_write_5m=20, output=7, reasoning=5
    )
    assert finish.provider_cost_usd == Decimal("0.0125")
    assert finish.usage_raw["total_tokens"] == 137


def test_missing_usage_is_not_zero_usage() -> None:
    assert finish_of(rendered(Reply(Say("x"), delivery=Delivery(usage=False)))).usage is None


def test_unknown_events_and_items_are_passed_over_and_counted() -> None:
    search = {"id": "ws_1", "type": "web_search_call"}
    found = heard(
        {"type": "response.weather", "sky": "blue"},
        added(search, output_index=0),
        {"type": "response.web_search_call.searching", "output_index": 0},
        done(search, output_index=0),
        added(MESSAGE, output_index=1),
        more("output_text", "x", output_index=1),
        ended(),
    )
    assert texts(found) == "x"
    assert finish_of(found).skipped_events == 4


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"type": "error", "code": "server_error", "message": "gone"}, "gone"),
        ({"type": "error", "error": {"type": "x", "message": "gone"}}, "gone"),
        ({"error": {"code": 500, "message": "gone"}}, "gone"),
        (ended("failed", error={"code": "server_error", "message": "gone"}), "gone"),
        (ended("failed", error=None), "broken off"),
        (ended("cancelled"), "broken off"),
    ],
)
def test_an_error_in_place_of_an_event_is_one(document: Any, said: str) -> None:
    with pytest.raises(StreamError, match=said):
        heard(added(MESSAGE), document)


def test_a_reply_without_its_last_event_is_no_reply() -> None:
    whole = events_of(Reply(Think("hm"), Say("so"), Call("bash")), "responses", 0, "m")
    with pytest.raises(NetworkFailure):
        read([ServerSentEvent(e.name, e.data) for e in whole[:-1]])
    with pytest.raises(NetworkFailure):
        read([ServerSentEvent(data="[DONE]")])


@pytest.mark.parametrize(
    "document",
    [
        more("output_text", "x", output_index=3),
        more("output_text", "x", item_id="nobody"),
        added({"type": "function_call", "name": "bash"}),
        done({**CALL, "name": ""}),
        done(5),
        ended("completed") | {"response": []},
        {"type": "response.output_text.delta", "delta": {}},
    ],
)
def test_an_event_that_makes_no_sense_breaks_the_protocol(document: Any) -> None:
    with pytest.raises(ProtocolBroken):
        heard(document)


def test_items_without_end_break_the_protocol() -> None:
    with pytest.raises(ProtocolBroken, match="more than 1024 items"):
        heard(*[added(MESSAGE)] * 1025)


KINDS = st.sampled_from(
    [
        *("response.created", "response.output_item.added", "response.output_item.done"),
        *("response.output_text.delta", "response.function_call_arguments.delta"),
        *("response.function_call_arguments.done", "response.refusal.delta"),
        *("response.reasoning_summary_text.delta", "response.reasoning_summary_part.added"),
        *("response.completed", "response.incomplete", "response.failed", "error", "weather"),
        *("message", "reasoning", "function_call", "output_text", "incomplete"),
    ]
)
WORDS = st.sampled_from(
    [
        *("type", "item", "item_id", "output_index", "delta", "response", "error", "id", "name"),
        *("call_id", "arguments", "content", "summary", "text", "status", "output", "usage"),
        *("encrypted_content", "incomplete_details", "input_tokens", "refusal"),
    ]
)
VALUES = st.recursive(
    st.none() | st.integers(-1, 2) | KINDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)
ITEMS = st.fixed_dictionaries(
    {"type": KINDS},
    optional={"id": st.sampled_from("ab"), "call_id": st.sampled_from("cd"), "name": KINDS}
    | {"content": VALUES, "summary": VALUES, "arguments": VALUES, "status": VALUES},
)
EVENTS = st.fixed_dictionaries(
    {"type": KINDS},
    optional={"item": ITEMS, "item_id": st.sampled_from("ab"), "output_index": st.integers(0, 2)}
    | {"delta": st.text(max_size=3), "response": st.dictionaries(WORDS, VALUES, max_size=4)},
)


@settings(deadline=None)
@given(st.lists(EVENTS | st.dictionaries(WORDS, VALUES, max_size=6), max_size=8))
def test_any_documents_give_events_or_a_typed_error(documents: list[Any]) -> None:
    try:
        found = heard(*documents)
    except (ProviderError, StreamError):
        return
    assert isinstance(found[-1], Finish)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_events_or_a_typed_error(stream: bytes) -> None:
    decoder = EventDecoder()
    try:
        found = read([*decoder.feed(stream), *decoder.end()])
    except (ProviderError, StreamError):
        return
    assert isinstance(found[-1], Finish)
