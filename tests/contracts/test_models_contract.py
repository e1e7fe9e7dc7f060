"""What every model must do, whatever it speaks: one suite over all wire formats and scripts."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from harness_batch.config.record import ProviderSettings
from harness_batch.errors import (
    AuthFailed,
    ContextOverflow,
    ModelRejected,
    NetworkFailure,
    Overloaded,
    ProtocolBroken,
    ProviderError,
    ProviderTimeout,
    QuotaExhausted,
    RateLimited,
    Unavailable,
    Unsupported,
    UsageError,
)
from harness_batch.messages import ModelRef, Turn
from harness_batch.models.anthropic_wire import CACHE_MARK
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    Model,
    QuotasTold,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.models.table import connect
from wire import Call, Delivery, Raw, Refuse, Reply, Say, Server, Think, Tries, Usage, serve
from wire.rendering import Format, bytes_of, events_of
from wire.script import Script
from wire.transcripts import heard, open_model, replies, request, user

WIRES = ("anthropic", "openai-chat", "openai-responses")
FORMS: dict[str, Format] = {
    "anthropic": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "responses",
}
WIRE = pytest.mark.parametrize("wire", WIRES)
KIND = pytest.mark.parametrize("kind", [*WIRES, "scripted"])

LOOK = Reply(
    Say("I look first, ünïcode 🌤."),
    Call("bash", {"command": "ls"}),
    Call("read", {"file_path": "ä.py"}),
)
CONVERSATION = (LOOK, Reply(Call("bash")), Reply(Say("Done.")))


def url_of(server: Server, wire: str) -> str:
    return server.anthropic_url if wire == "anthropic" else server.openai_url


@asynccontextmanager
async def served(
    wire: str, *answers: Any, settings: dict[str, Any] | None = None, **server: Any
) -> AsyncIterator[tuple[Model, Server]]:
    async with serve(answers, **server) as provider:
        model = open_model(wire, url_of(provider, wire), **(settings or {}))
        try:
            yield model, provider
        finally:
            await model.aclose()


def script_file(script: Script, folder: Path) -> Path:
    steps = [
        {
            "text": "".join(b.text for b in reply.blocks if isinstance(b, Say)),
            "calls": [
                {"name": b.name, "arguments": b.arguments}
                for b in reply.blocks
                if isinstance(b, Call)
            ],
        }
        for reply in script
        if isinstance(reply, Reply)
    ]
    path = folder / "script.yaml"
    path.write_text(json.dumps(steps, ensure_ascii=False))
    return path


@asynccontextmanager
async def talking(kind: str, script: Script, folder: Path) -> AsyncIterator[Model]:
    if kind == "scripted":
        ref = ModelRef("scripted", str(script_file(script, folder)))
        yield connect(ref, ProviderSettings(name="scripted", type="scripted"))
    else:
        async with served(kind, *script) as (model, _):
            yield model


def shape(events: Sequence[LlmEvent]) -> list[tuple[Any, ...]]:
    """What was said, leaving aside how it was cut and which ids it got."""
    said: list[tuple[Any, ...]] = []
    open_parts: dict[str, list[str]] = {}
    for event in events:
        match event:
            case TextStart(id=key) | ReasoningStart(id=key) | ToolInputStart(call_id=key):
                assert key not in open_parts, "ids are unique in a reply"
                open_parts[key] = []
            case TextDelta(id=key, text=text) | ReasoningDelta(id=key, text=text):
                open_parts[key].append(text)
            case ToolInputDelta(call_id=key, json=text):
                open_parts[key].append(text)
            case TextEnd(id=key):
                said.append(("text", "".join(open_parts[key])))
            case ReasoningEnd(id=key):
                said.append(("thinking", "".join(open_parts[key])))
            case ToolCall(call_id=key, name=name, arguments=arguments):
                assert "".join(open_parts.get(key, [])) in {"", arguments}
                said.append(("call", name, json.loads(arguments)))
            case Finish(reason=reason):
                said.append(("finish", reason))
            case ReplyStarted():
                said.append(("started",))
            case QuotasTold():
                pass
    return said


async def converse(model: Model, steps: int) -> tuple[list[list[tuple[Any, ...]]], list[Turn]]:
    turns = [user(0, "Begin.")]
    shapes = []
    for number in range(1, steps + 1):
        events = await replies(model, request(*turns))
        shapes.append(shape(events))
        turns.append(heard(events, number))
    return shapes, turns


@KIND
async def test_the_same_conversation_gives_the_same_events(kind: str, tmp_path: Path) -> None:
    async with talking(kind, CONVERSATION, tmp_path) as model:
        shapes, turns = await converse(model, 3)
    assert shapes == [
        [
            ("started",),
            ("text", "I look first, ünïcode 🌤."),
            ("call", "bash", {"command": "ls"}),
            ("call", "read", {"file_path": "ä.py"}),
            ("finish", "tool_calls"),
        ],
        [("started",), ("call", "bash", {}), ("finish", "tool_calls")],
        [("started",), ("text", "Done."), ("finish", "stop")],
    ]
    ids = [use.call_id for turn in turns for use in turn.tool_uses()]
    assert len(set(ids)) == 3


@KIND
async def test_past_its_end_the_script_has_nothing_more_to_do(kind: str, tmp_path: Path) -> None:
    async with talking(kind, CONVERSATION[:1], tmp_path) as model:
        shapes, _ = await converse(model, 2)
    assert shapes[1] == [("started",), ("text", "Nothing more to do."), ("finish", "stop")]


@KIND
async def test_a_reply_has_usage_and_says_what_it_is(kind: str, tmp_path: Path) -> None:
    async with talking(kind, CONVERSATION, tmp_path) as model:
        events = await replies(model, request())
        again = await replies(model, request())
    assert isinstance(events[0], ReplyStarted)
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    assert finish.usage.input > 0
    assert finish.usage.output > 0
    assert finish == again[-1]


@KIND
async def test_a_model_can_be_left_in_the_middle_and_asked_again(kind: str, tmp_path: Path) -> None:
    async with talking(kind, CONVERSATION, tmp_path) as model:
        async with model.stream(request()) as batches:
            async for batch in batches:
                assert batch
                break
        events = await replies(model, request())
    assert shape(events)[-1] == ("finish", "tool_calls")


@KIND
async def test_closing_twice_is_closing(kind: str, tmp_path: Path) -> None:
    async with talking(kind, CONVERSATION, tmp_path) as model:
        await model.aclose()
        await model.aclose()


DELIVERIES = {
    "byte by byte": Delivery(chunk=1),
    "three bytes": Delivery(chunk=3, newline="\r\n"),
    "in one": Delivery(chunk=0),
    "crlf": Delivery(newline="\r\n"),
    "cr": Delivery(newline="\r", chunk=5),
    "bom": Delivery(bom=True),
    "comments": Delivery(comments=True, newline="\r\n"),
    "ids": Delivery(ids=True, comments=True),
    "unknown events": Delivery(unknown_events=True),
    "no usage": Delivery(usage=False),
    "no last blank line": Delivery(last_blank_line=False, framing="close"),
    "close": Delivery(framing="close"),
    "length": Delivery(framing="length"),
    "connection: close": Delivery(keep_alive=False),
    "whole arguments": Delivery(arguments="whole"),
}


@WIRE
@pytest.mark.parametrize("name", DELIVERIES)
async def test_however_it_is_delivered_the_reply_is_the_same(wire: str, name: str) -> None:
    reply = Reply(*LOOK.blocks, delivery=DELIVERIES[name])
    async with served(wire, LOOK) as (model, _):
        plain = await replies(model, request())
    async with served(wire, reply) as (model, _):
        events = await replies(model, request())
    assert shape(events) == shape(plain)
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert (finish.usage is None) == (name == "no usage")
    assert (finish.skipped_events > 0) == (name == "unknown events")


@WIRE
async def test_thinking_comes_and_goes_back_where_the_format_knows_it(wire: str) -> None:
    script = (Reply(Think("hm"), Say("a"), Call("bash")), Reply(Say("b")))
    async with served(wire, *script) as (model, server):
        shapes, _ = await converse(model, 2)
    assert ("thinking", "hm") in shapes[0]
    sent = server.requests[-1].body
    back = {
        "anthropic": b'{"type":"thinking","thinking":"hm","signature":"c2lnbmF0dXJl"}',
        "openai-responses": b'"encrypted_content":"c2lnbmF0dXJl",'
        b'"summary":[{"type":"summary_text","text":"hm"}]}',
    }
    assert back[wire] in sent if wire in back else b"hm" not in sent


@WIRE
async def test_what_a_provider_seals_a_call_with_goes_back_where_it_came_from(wire: str) -> None:
    seal = {"google": {"thought_signature": "c2ln"}}
    script = (Reply(Call("bash", extra=seal), Call("read")), Reply(Say("b")))
    async with served(wire, *script) as (model, server):
        await converse(model, 2)
    body = server.requests[-1].json
    if wire == "openai-chat":
        calls = next(m["tool_calls"] for m in body["messages"] if m.get("tool_calls"))
        assert [call.get("extra_content") for call in calls] == [seal, None]
    else:
        assert b"thought_signature" not in server.requests[-1].body


@WIRE
async def test_a_lost_end_mark_is_forgiven_when_all_else_is_there(wire: str) -> None:
    reply = Reply(*LOOK.blocks, delivery=Delivery(end_mark=False))
    async with served(wire, reply) as (model, _):
        events = await replies(model, request())
    assert shape(events)[-1] == ("finish", "tool_calls")


REFUSALS: dict[str, tuple[Any, type[ProviderError]]] = {
    "wrong key": (Refuse(401, {"error": {"message": "bad key"}}), AuthFailed),
    "forbidden": (Refuse(403, {"error": {"message": "no"}}), AuthFailed),
    "wrong model": (Refuse(404, {"error": {"message": "no model m"}}), ModelRejected),
    "bad request": (Refuse(400, {"error": {"message": "no"}}), ModelRejected),
    "too long": (Refuse(400, {"error": {"message": "prompt is too long: 9 > 8"}}), ContextOverflow),
    "too large": (Refuse(413, "Payload too large"), ContextOverflow),
    "rate limit": (Refuse(429, {"error": {"message": "slow"}}), RateLimited),
    "no credit": (Refuse(429, {"error": {"code": "insufficient_quota"}}), QuotaExhausted),
    "overloaded": (Refuse(529, {"error": {"type": "overloaded_error"}}), Overloaded),
    "internal": (Refuse(500, "<html><h1>Oops</h1></html>", {}, "text/html"), Unavailable),
    "bad gateway": (Refuse(502, ""), Unavailable),
    "a page": (Refuse(200, "<html><p>Log in</p></html>", {}, "text/html"), ProtocolBroken),
    "json in place of a stream": (Refuse(200, {"choices": []}), ProtocolBroken),
    "an error under 200": (Refuse(200, {"error": {"type": "overloaded_error"}}), Overloaded),
    "nothing": (Refuse(204, ""), ProtocolBroken),
    "moved": (Refuse(307, "", {"location": "http://127.0.0.1:1/"}), ProtocolBroken),
    "closed at once": (Raw(), NetworkFailure),
    "garbage": (Raw(b"\x00\xffgarbage\r\n\r\n"), ProtocolBroken),
    "half a head": (Raw(b"HTTP/1.1 200 OK\r\ncontent-ty"), NetworkFailure),
    "an empty stream": (Reply(delivery=Delivery(cut_after=0, clean_cut=True)), NetworkFailure),
    "junk in the stream": (
        Raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {oops\n\nx\n\n"),
        ProtocolBroken,
    ),
    "a broken off error": (
        Raw(b"HTTP/1.1 500 Oops\r\ncontent-length: 99\r\n\r\nhalf an expl"),
        Unavailable,
    ),
}  # fmt: skip


@WIRE
@pytest.mark.parametrize("name", REFUSALS)
async def test_what_is_no_reply_is_its_typed_error(wire: str, name: str) -> None:
    answer, kind = REFUSALS[name]
    async with served(wire, answer) as (model, server):
        with pytest.raises(ProviderError) as caught:
            await replies(model, request())
        assert len(server.requests) == 1, "one request is sent, and nothing is followed"
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mine: ")
    if isinstance(answer, Refuse):
        assert caught.value.status == answer.status


@WIRE
async def test_after_a_refusal_the_same_connection_serves_the_next_try(wire: str) -> None:
    tries = Tries(Refuse(429, "slow", {"retry-after": "7"}), Refuse(500, ""), LOOK)
    async with served(wire, tries) as (model, server):
        with pytest.raises(RateLimited) as caught:
            await replies(model, request())
        assert caught.value.retry_after == 7
        with pytest.raises(Unavailable):
            await replies(model, request())
        events = await replies(model, request())
        assert server.connections == 1
    assert shape(events)[-1] == ("finish", "tool_calls")


ERRORS: list[tuple[dict[str, Any], type[ProviderError]]] = [
    ({"type": "overloaded_error", "message": "Overloaded"}, Overloaded),
    ({"type": "rate_limit_error", "message": "slow"}, RateLimited),
    ({"type": "invalid_request_error", "message": "no"}, ModelRejected),
    ({"code": "context_length_exceeded", "message": "too long"}, ContextOverflow),
]


@WIRE
@pytest.mark.parametrize(("error", "kind"), ERRORS)
async def test_an_error_inside_the_stream_is_typed_after_what_came_before(
    wire: str, error: dict[str, Any], kind: type[ProviderError]
) -> None:
    reply = Reply(Say("half a sentence" * 2), delivery=Delivery(error_after=(5, error), chunk=0))
    seen: list[LlmEvent] = []
    async with served(wire, reply) as (model, _):
        with pytest.raises(ProviderError) as caught:  # noqa: PT012 - events come before it
            async with model.stream(request()) as batches:
                async for batch in batches:
                    seen.extend(batch)
    assert type(caught.value) is kind
    assert any(isinstance(event, TextDelta) for event in seen)


@WIRE
async def test_a_reply_cut_anywhere_is_whole_or_an_error_but_never_half(wire: str) -> None:
    blocks = (Say("ü"), Call("bash", {"a": 1}))
    whole = Reply(*blocks, delivery=Delivery(chunk=0))
    async with served(wire, whole) as (model, _):
        complete = shape(await replies(model, request()))

    async def cut(model: Model, place: int) -> None:
        try:
            events = await replies(model, request(user(0, str(place))))
        except (NetworkFailure, ProtocolBroken):
            return
        ends.append(place)
        assert shape(events) == complete

    def answer(seen: Any) -> Reply:
        content = (seen.json.get("messages") or seen.json["input"])[-1]["content"]
        place = int(content if isinstance(content, str) else content[0]["text"])
        clean = place % 2 == 0
        return Reply(*blocks, delivery=Delivery(chunk=0, cut_after=place, clean_cut=clean))

    size = len(b"".join(bytes_of(events_of(whole, FORMS[wire], 0, "m"), Delivery())))
    ends: list[int] = []
    # All places near the end, where it counts, and every seventh before.
    places = (*range(0, size - 100, 7), *range(size - 100, size + 3))
    async with serve(answer) as server:
        model = open_model(wire, url_of(server, wire))
        for place in places:
            await cut(model, place)
        await model.aclose()
    assert ends[0] > size / 2, "only the end of the stream is forgiven"
    assert ends[-3:] == [size, size + 1, size + 2]


@WIRE
@pytest.mark.parametrize("trickle", [None, 0.01])
@pytest.mark.parametrize("after", [0, 300])
async def test_a_server_that_falls_silent_is_given_up(
    wire: str, trickle: float | None, after: int
) -> None:
    reply = Reply(Say("x" * 99), delivery=Delivery(silent_after=after, trickle=trickle))
    waits = {"first_byte_timeout": 0.15, "idle_timeout": 0.15}
    async with served(wire, reply, settings=waits) as (model, server):
        with trio.fail_after(2), pytest.raises(ProviderTimeout, match=r"no event for 0\.15 s"):
            await replies(model, request())
        await gone(server)


@WIRE
async def test_a_server_that_never_completes_an_event_is_given_up(wire: str) -> None:
    reply = Reply(Say("x" * 99), delivery=Delivery(chunk=1, pause=0.005))
    waits = {"first_byte_timeout": 0.1, "idle_timeout": 0.1}
    async with served(wire, reply, settings=waits) as (model, server):
        with trio.fail_after(2), pytest.raises(ProviderTimeout, match=r"no event for 0\.1 s"):
            await replies(model, request())
        await gone(server)


@WIRE
async def test_a_server_that_keeps_the_line_open_after_the_end_is_not_waited_for(
    wire: str,
) -> None:
    whole = Reply(Say("x"), delivery=Delivery(silent_after=100_000))
    async with served(wire, whole) as (model, server):
        with trio.fail_after(2):
            events = await replies(model, request())
        await gone(server)
    assert shape(events)[-1] == ("finish", "stop")


@WIRE
async def test_a_server_that_never_answers_is_given_up(wire: str) -> None:
    waits = {"first_byte_timeout": 0.1, "connect_timeout": 0.1}
    async with served(wire, Raw(hang=True), settings=waits) as (model, server):
        with trio.fail_after(2), pytest.raises(ProviderTimeout, match="no answer within") as caught:
            await replies(model, request())
        await gone(server)
    assert caught.value.sent, "the provider may have worked on it"


@WIRE
async def test_a_request_that_went_out_and_was_dropped_may_have_cost_something(wire: str) -> None:
    async with served(wire, Raw()) as (model, _):
        with pytest.raises(NetworkFailure) as caught:
            await replies(model, request())
    assert caught.value.sent


async def gone(server: Server) -> None:
    """Until the server has seen the client close."""
    with trio.fail_after(2):
        await server.all_closed()


@WIRE
async def test_a_cancelled_reply_closes_its_connection(wire: str) -> None:
    reply = Reply(Say("x" * 99), delivery=Delivery(silent_after=300, trickle=0.005))
    async with served(wire, reply) as (model, server):
        async with trio.open_nursery() as nursery, model.stream(request()) as batches:
            async for _ in batches:
                nursery.cancel_scope.cancel()
                break
        await gone(server)


@WIRE
async def test_all_steps_of_a_session_use_one_connection_and_send_their_length(wire: str) -> None:
    async with served(wire, *CONVERSATION) as (model, server):
        await converse(model, 3)
    assert [seen.connection for seen in server.requests] == [0, 0, 0]
    assert [int(seen.headers["content-length"]) for seen in server.requests] == [
        len(seen.body) for seen in server.requests
    ]
    plain = [seen.body.replace(CACHE_MARK, b"") for seen in server.requests]
    for old, new in pairwise(plain):
        end = max(old.rfind(b'],"max_tokens"'), old.rfind(b'],"max_output_tokens"'))
        assert new.startswith(old[:end])


@WIRE
async def test_parallel_sessions_each_get_their_own_conversation(wire: str) -> None:
    results: dict[int, list[list[tuple[Any, ...]]]] = {}

    async def session(number: int) -> None:
        model = open_model(wire, url_of(server, wire))
        turns = [user(0, f"Item {number}")]
        results[number] = []
        for step in range(1, 4):
            events = await replies(model, request(*turns))
            results[number].append(shape(events))
            turns.append(heard(events, step))
        await model.aclose()

    async with serve(CONVERSATION) as server, trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(session, number)
    assert len(server.requests) == 24
    assert all(result == results[0] for result in results.values())


@WIRE
async def test_the_key_travels_in_its_header_and_in_no_error(wire: str) -> None:
    async with served(wire, LOOK, key="another") as (model, server):
        with pytest.raises(AuthFailed) as caught:
            await replies(model, request())
    seen = server.requests[0].headers
    name, value = (
        ("x-api-key", "sk-test") if wire == "anthropic" else ("authorization", "Bearer sk-test")
    )
    assert seen[name] == value
    assert "sk-test" not in str(caught.value)
    assert "api_key of provider mine" in str(caught.value)


@pytest.mark.parametrize(
    ("wire", "name", "variable"),
    [
        ("anthropic", "anthropic", "ANTHROPIC_API_KEY"),
        ("openai-chat", "openai", "OPENAI_API_KEY"),
        ("openai-responses", "openai", "OPENAI_API_KEY"),
        ("openai-responses", "openai-responses", "OPENAI_API_KEY"),
    ],
)
async def test_without_a_key_nothing_is_sent_and_the_variable_is_named(
    wire: Any, name: str, variable: str
) -> None:
    async with serve([LOOK]) as server:
        settings = ProviderSettings(name=name, type=wire, base_url=url_of(server, wire))
        model = connect(ModelRef(name, "m"), settings)
        with pytest.raises(AuthFailed, match=f"no API key; set {variable}"):
            await replies(model, request())
        await model.aclose()
    assert not server.requests


@WIRE
@pytest.mark.parametrize("key", ["sk-a\nb", "sk a", "schlüssel"])
async def test_a_key_that_cannot_be_one_is_not_sent_and_not_told(wire: str, key: str) -> None:
    async with served(wire, LOOK, settings={"api_key": key}) as (model, server):
        with pytest.raises(AuthFailed) as caught:
            await replies(model, request())
    assert not server.requests
    assert key not in str(caught.value)


@WIRE
async def test_a_server_of_ones_own_needs_no_key(wire: str) -> None:
    headers = {"X-Team": "a", "User-Agent": "mine"}
    settings = {"api_key": None, "headers": headers}
    async with served(wire, LOOK, settings=settings) as (model, server):
        await replies(model, request())
    seen = server.requests[0].headers
    assert not {"authorization", "x-api-key"} & set(seen)
    assert (seen["x-team"], seen["user-agent"]) == ("a", "mine")


@WIRE
async def test_an_unknown_model_is_named(wire: str) -> None:
    async with served(wire, LOOK, models=["other"]) as (model, _):
        with pytest.raises(ModelRejected, match="HTTP 404: model: m"):
            await replies(model, request())


@WIRE
async def test_nobody_there_is_said_with_the_reason(wire: str) -> None:
    model = open_model(wire, "http://127.0.0.1:9/v1")
    with pytest.raises(
        NetworkFailure, match=r"mine: cannot connect to 127\.0\.0\.1:9: \w+"
    ) as caught:
        await replies(model, request())
    await model.aclose()
    assert not caught.value.sent


@WIRE
@pytest.mark.parametrize(
    "url", ["example.org/v1", "ftp://example.org", "http://", "http://[::1", "http://x:99999"]
)
def test_a_base_url_that_is_none_is_refused_at_once(wire: str, url: str) -> None:
    with pytest.raises(UsageError, match="provider mine: base_url"):
        open_model(wire, url)


def test_types_that_do_not_exist_yet_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="type telepathy is not supported yet"):
        open_model("telepathy", "http://127.0.0.1:1")


@WIRE
async def test_tool_choice_none_keeps_the_tools_and_says_so(wire: str) -> None:
    async with served(wire, Reply(Say("x"), usage=Usage())) as (model, server):
        await replies(model, evolve(request(), tool_choice="none"))
    body = server.requests[0].json
    assert body["tools"]
    assert body["tool_choice"] == ({"type": "none"} if wire == "anthropic" else "none")


@WIRE
async def test_parameters_of_the_url_stand_at_its_end(wire: str) -> None:
    query = {"api-version": "2024-10-21", "a b": "ü&"}
    async with serve([LOOK]) as server:
        model = open_model(wire, f"{url_of(server, wire)}/?own=1", query=query, api_key=None)
        await replies(model, request())
        await model.aclose()
    assert server.requests[0].path in {"/v1/messages", "/v1/chat/completions", "/v1/responses"}
    assert server.requests[0].query == "own=1&api-version=2024-10-21&a+b=%C3%BC%26"
