"""What the configuration's options and a model's abilities make of a request."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from harness_batch.config.model_options import ModelOptions
from harness_batch.config.record import Abilities
from harness_batch.messages import Completed, Image, ToolUse, Turn
from harness_batch.models import anthropic_wire, openai_responses_wire, openai_wire
from harness_batch.models.hosted import Writer
from harness_batch.models.protocol import ModelRequest, Only
from harness_batch.models.target import Target
from wire import responses
from wire.transcripts import BASH, request, turn, user
from wire.validation import anthropic_fault, openai_fault

WRITERS: dict[str, Callable[[Target], Writer]] = {
    "anthropic": anthropic_wire.RequestWriter,
    "openai": openai_wire.RequestWriter,
    "responses": openai_responses_wire.RequestWriter,
}
FAULTS = {"anthropic": anthropic_fault, "openai": openai_fault, "responses": responses.fault}
FORMS = pytest.mark.parametrize("form", WRITERS)
PICTURE = Image(media_type="image/png", data="iVBORw0KGgo=")


def body(
    form: str, asked: ModelRequest | None = None, *, can: Abilities | None = None, **options: Any
) -> Any:
    target = Target("m", "", ModelOptions(**options), can or Abilities())
    written = json.loads(WRITERS[form](target).body(asked or request()))
    assert FAULTS[form](written) is None
    return written


def looked() -> tuple[Turn, ...]:
    """A session that has read a picture and has been told something since."""
    state = Completed(input={}, title="a.png", output="a picture", images=(PICTURE,))
    use = ToolUse(call_id="c1", name="read", state=state)
    return (user(0, "Look."), turn(1, "assistant", use), user(2, "Well?"))


def test_effort_is_said_in_each_formats_own_words() -> None:
    assert body("anthropic", reasoning_effort="high")["output_config"] == {"effort": "high"}
    assert body("openai", reasoning_effort="high")["reasoning_effort"] == "high"
    told = body("responses", reasoning_effort="high", reasoning_summary="auto")["reasoning"]
    assert told == {"effort": "high", "summary": "auto"}
    assert not {"output_config", "thinking"} & set(body("anthropic"))
    assert "reasoning" not in body("responses")


@pytest.mark.parametrize(
    ("most", "budget"),
    [(20_000, 8000), (9024, 8000), (8000, 6976), (2048, 1024), (2047, None), (10, None)],
)
def test_thinking_leaves_room_for_an_answer(most: int, budget: int | None) -> None:
    asked = evolve(request(), max_output_tokens=most)
    thinking = body("anthropic", asked, thinking_budget=8000).get("thinking")
    assert thinking == (budget and {"type": "enabled", "budget_tokens": budget})


@pytest.mark.parametrize("form", ["openai", "responses"])
def test_the_one_tool_there_is_is_required_and_one_of_several_is_named(form: str) -> None:
    asked = evolve(request(), tool_choice=Only("bash"))
    assert body(form, evolve(asked, tools=(BASH,)))["tool_choice"] == "required"
    assert "bash" in json.dumps(body(form, asked)["tool_choice"])


def test_a_model_that_thinks_is_not_told_what_it_refuses() -> None:
    asked = evolve(request(), temperature=0.2, tool_choice=Only("bash"), max_output_tokens=9000)
    for budget in (2048, "adaptive"):
        written = body("anthropic", asked, thinking_budget=budget)
        assert written["thinking"]["type"] == ("adaptive" if budget == "adaptive" else "enabled")
        assert not {"temperature", "tool_choice"} & set(written)
    plain = body("anthropic", asked)
    assert (plain["temperature"], plain["tool_choice"]["name"]) == (0.2, "bash")
    off = evolve(asked, tool_choice="none")
    assert body("anthropic", off, thinking_budget=2048)["tool_choice"] == {"type": "none"}


@FORMS
def test_a_model_that_takes_no_temperature_gets_none(form: str) -> None:
    asked = evolve(request(), temperature=0.5)
    assert body(form, asked, can=Abilities(temperature=True))["temperature"] == 0.5
    assert "temperature" not in body(form, asked, can=Abilities(temperature=False))


def test_reasoning_is_asked_for_unless_the_model_is_known_to_have_none() -> None:
    assert body("responses")["include"] == ["reasoning.encrypted_content"]
    assert "include" not in body("responses", can=Abilities(reasoning=False))


@FORMS
def test_further_fields_go_out_as_they_are(form: str) -> None:
    written = body(
        form,
        body={"service_tier": "flex", "top_p": 0.5}
        if form != "responses"
        else {"service_tier": "flex"},
    )
    assert written["service_tier"] == "flex"


def test_further_fields_take_the_place_of_our_own() -> None:
    asked = evolve(request(), temperature=0.5)
    assert body("openai", asked, body={"temperature": 1})["temperature"] == 1
    assert body("responses", asked, body={"include": []})["include"] == []


def test_the_shared_beginning_may_be_kept_for_an_hour() -> None:
    written = body("anthropic", cache_ttl="1h")
    long = {"type": "ephemeral", "ttl": "1h"}
    assert written["tools"][-1]["cache_control"] == long
    assert written["system"][-1]["cache_control"] == long
    assert written["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


def test_sessions_with_the_same_beginning_share_their_cache_key() -> None:
    key = body("responses")["prompt_cache_key"]
    assert key == body("responses", request(user(7, "another item")))["prompt_cache_key"]
    assert key != body("responses", evolve(request(), system=("other",)))["prompt_cache_key"]
    assert key != body("responses", request(tools=()))["prompt_cache_key"]
    assert body("responses", prompt_cache_key="mine")["prompt_cache_key"] == "mine"
    assert len(key) <= 64


def test_only_openais_own_chat_is_sent_a_cache_key_unasked() -> None:
    assert "prompt_cache_key" not in body("openai")
    assert body("openai", prompt_cache_key="mine")["prompt_cache_key"] == "mine"
    target = Target("m", "https://api.openai.com/v1")
    assert b'"prompt_cache_key":"hb-' in openai_wire.RequestWriter(target).body(request())


@FORMS
@pytest.mark.parametrize("can", [Abilities(), Abilities(images=False)])
def test_a_model_that_is_not_known_to_take_images_gets_none(form: str, can: Abilities) -> None:
    written = json.dumps(body(form, request(*looked()), can=can))
    assert PICTURE.data not in written
    assert "a picture" in written


def test_images_stand_in_the_result_or_right_after_it() -> None:
    can, asked = Abilities(images=True), request(*looked())
    result = body("anthropic", asked, can=can)["messages"][2]["content"][0]
    assert result["content"] == [
        {"type": "text", "text": "a picture"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PICTURE.data},
        },
    ]
    url = f"data:image/png;base64,{PICTURE.data}"
    output = body("responses", asked, can=can)["input"][2]["output"]
    assert output[1] == {"type": "input_image", "image_url": url}
    tool, told = body("openai", asked, can=can)["messages"][-2:]
    assert (tool["role"], tool["content"]) == ("tool", "a picture")
    assert [part.get("image_url") for part in told["content"]] == [None, {"url": url}, None]
    assert told["content"][2]["text"] == "Well?"
