"""The test server against the vendors' own clients: what they understand is the real format."""

import json

import pytest
import trio

from wire import Call, Delivery, Reply, Say, Think, Usage, serve

SCRIPT = [
    Reply(
        Think("hm"),
        Say("I look, ünïcode."),
        Call("bash", {"command": "ls"}),
        Call("read", {"file_path": "x"}),
        usage=Usage(input=10, output=7, cache_read=5, cache_write_5m=2, reasoning=3),
        delivery=Delivery(comments=True, chunk=11, newline="\r\n"),
    )
]
TEXT = {"type": "input_text", "text": "Begin."}
PROMPT = {"role": "user", "content": [{"type": "text", "text": "Begin."}]}


async def test_anthropics_client_reads_the_stream_as_it_was_meant() -> None:
    anthropic = pytest.importorskip("anthropic", reason="the vendor's client is not installed")
    async with serve(SCRIPT, key="k") as server:

        def ask() -> object:
            with (
                anthropic.Anthropic(base_url=server.anthropic_url, api_key="k") as client,
                client.messages.stream(model="m", max_tokens=9, messages=[PROMPT]) as stream,
            ):
                return json.loads(stream.get_final_message().to_json())

        message = await trio.to_thread.run_sync(ask)
    assert isinstance(message, dict)
    blocks = message["content"]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert blocks[0]["signature"]
    assert blocks[1]["text"] == "I look, ünïcode."
    assert [block["input"] for block in blocks[2:]] == [{"command": "ls"}, {"file_path": "x"}]
    assert message["stop_reason"] == "tool_use"
    assert message["usage"]["output_tokens"] == 7
    assert message["usage"]["cache_creation"]["ephemeral_5m_input_tokens"] == 2


async def test_openais_client_reads_the_stream_as_it_was_meant() -> None:
    openai = pytest.importorskip("openai", reason="the vendor's client is not installed")
    async with serve(SCRIPT, key="k") as server:

        def ask() -> object:
            with openai.OpenAI(base_url=server.openai_url, api_key="k") as client:
                stream = client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "Begin."}],
                    stream=True,
                    stream_options={"include_usage": True},
                )
                return [json.loads(chunk.to_json()) for chunk in stream]

        chunks = await trio.to_thread.run_sync(ask)
    assert isinstance(chunks, list)
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "I look, ünïcode."
    arguments = {0: "", 1: ""}
    for delta in deltas:
        for call in delta.get("tool_calls") or ():
            arguments[call["index"]] += call["function"]["arguments"]
    assert [json.loads(text) for text in arguments.values()] == [
        {"command": "ls"},
        {"file_path": "x"},
    ]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 5


async def test_openais_client_reads_responses_as_they_were_meant() -> None:
    openai = pytest.importorskip("openai", reason="the vendor's client is not installed")
    async with serve(SCRIPT, key="k") as server:

        def ask() -> object:
            with (
                openai.OpenAI(base_url=server.openai_url, api_key="k") as client,
                client.responses.stream(
                    model="m",
                    input=[{"type": "message", "role": "user", "content": [TEXT]}],
                    max_output_tokens=9,
                    store=False,
                    include=["reasoning.encrypted_content"],
                ) as stream,
            ):
                kinds = [event.type for event in stream]
                return kinds, json.loads(stream.get_final_response().to_json())

        found = await trio.to_thread.run_sync(ask)
    assert isinstance(found, tuple)
    kinds, response = found
    assert kinds[0] == "response.created"
    assert "response.reasoning_summary_text.delta" in kinds
    items = response["output"]
    assert [item["type"] for item in items] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert items[0]["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert items[0]["encrypted_content"]
    assert items[1]["content"][0]["text"] == "I look, ünïcode."
    assert [json.loads(item["arguments"]) for item in items[2:]] == [
        {"command": "ls"},
        {"file_path": "x"},
    ]
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 5
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] == 3


async def test_the_clients_read_errors_inside_the_stream_as_errors() -> None:
    anthropic = pytest.importorskip("anthropic", reason="the vendor's client is not installed")
    openai = pytest.importorskip("openai", reason="the vendor's client is not installed")
    error = {"type": "overloaded_error", "message": "Overloaded"}
    broken = Reply(Say("half a sentence"), delivery=Delivery(error_after=(5, error)))
    async with serve([broken]) as server:

        def ask_anthropic() -> None:
            with (
                anthropic.Anthropic(base_url=server.anthropic_url, api_key="k") as client,
                client.messages.stream(model="m", max_tokens=9, messages=[PROMPT]) as stream,
            ):
                stream.until_done()

        def ask_chat() -> None:
            with openai.OpenAI(base_url=server.openai_url, api_key="k") as client:
                said = [{"role": "user", "content": "Begin."}]
                list(client.chat.completions.create(model="m", messages=said, stream=True))

        def ask_responses() -> list[str]:
            with openai.OpenAI(base_url=server.openai_url, api_key="k") as client:
                events = client.responses.create(
                    model="m",
                    input=[{"type": "message", "role": "user", "content": [TEXT]}],
                    max_output_tokens=9,
                    stream=True,
                    store=False,
                    include=["reasoning.encrypted_content"],
                )
                return [f"{e.type}: {e.message}" for e in events if e.type == "error"]

        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            await trio.to_thread.run_sync(ask_anthropic)
        with pytest.raises(openai.APIError, match="Overloaded"):
            await trio.to_thread.run_sync(ask_chat)
        try:
            told = await trio.to_thread.run_sync(ask_responses)
        except openai.APIError as raised:
            told = [f"error: {raised.message}"]
    assert told == ["error: Overloaded"]


@pytest.mark.parametrize("status", [401, 404])
async def test_the_clients_take_our_refusals_for_the_real_ones(status: int) -> None:
    anthropic = pytest.importorskip("anthropic", reason="the vendor's client is not installed")
    openai = pytest.importorskip("openai", reason="the vendor's client is not installed")
    async with serve(SCRIPT, key="k" if status == 401 else None, models=["m"]) as server:
        kind = "AuthenticationError" if status == 401 else "NotFoundError"

        def ask_anthropic() -> None:
            with anthropic.Anthropic(base_url=server.anthropic_url, api_key="other") as client:
                client.messages.create(model="other", max_tokens=9, messages=[PROMPT])

        def ask_openai() -> None:
            with openai.OpenAI(base_url=server.openai_url, api_key="other") as client:
                client.chat.completions.create(model="other", messages=[PROMPT])

        with pytest.raises(getattr(anthropic, kind)):
            await trio.to_thread.run_sync(ask_anthropic)
        with pytest.raises(getattr(openai, kind)):
            await trio.to_thread.run_sync(ask_openai)
