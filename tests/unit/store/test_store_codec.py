"""An event and its line of JSON."""

import json
from decimal import Decimal

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch import events, messages
from harness_batch.codec import PAYLOADS, decode, encode, plain
from harness_batch.errors import StorageError
from harness_batch.events import Event
from store_events import RUN_ID, TIME, any_event, numbered, session_story, story


def of(payload: events.Payload) -> Event:
    return Event(RUN_ID, None, 1, TIME, payload)


@given(any_event)
@settings(max_examples=300)
def test_any_event_comes_back_from_its_line(event: Event) -> None:
    line = encode(event)
    assert b"\n" not in line
    assert decode(line) == event


@given(any_event)
@settings(max_examples=100)
def test_a_line_is_json_of_any_reader(event: Event) -> None:
    data = json.loads(encode(event).decode("utf-8"), parse_constant=pytest.fail)
    assert data["type"] in PAYLOADS
    assert data["seq"] == event.seq


def test_the_form_of_a_line_is_the_documented_one() -> None:
    event = next(e for e in numbered(session_story(1, 1)) if type(e.payload) is events.PartUpdated)
    assert json.loads(encode(event)) == {
        "type": "part_updated",
        "run_id": RUN_ID,
        "session_id": "ses_0001",
        "seq": event.seq,
        "ts": TIME,
        "part": {
            "id": "prt_ses_0001_0_0",
            "message_id": "msg_ses_0001_0",
            "session_id": "ses_0001",
            "idx": 0,
            "body": {"type": "text", "text": "I will look é", "synthetic": False},
        },
    }


def test_a_record_is_plain_values_with_tags_and_decimal_text() -> None:
    state = messages.Failed(input={"a": 1}, error="no")
    assert plain(messages.ToolUse(call_id="c", name="bash", state=state)) == {
        "type": "tool_use",
        "call_id": "c",
        "name": "bash",
        "state": {"type": "failed", "input": {"a": 1}, "error": "no"},
        "sealed": None,
    }
    closed = next(
        e.payload for e in numbered(story(1)) if isinstance(e.payload, events.ModelCallClosed)
    )
    data = plain(closed)["call"]
    assert (data["cost_usd"], data["try"]) == ("0.25", 1)


def test_every_member_of_the_union_has_a_type() -> None:
    assert len(PAYLOADS) == 22
    assert PAYLOADS["model_call_opened"] is events.ModelCallOpened


@given(st.text(alphabet=st.characters(categories=["Cs", "Ll"]), max_size=8))
def test_surrogates_survive_and_pairs_become_their_character(text: str) -> None:
    event = of(events.Notice("info", text))
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert decode(encode(event)).payload == events.Notice("info", joined)


def test_numbers_that_json_has_not_become_null() -> None:
    call = next(
        e.payload for e in numbered(story(1)) if isinstance(e.payload, events.ModelCallOpened)
    )
    odd = evolve(call, call=evolve(call.call, usage_raw=[float("nan"), 1.0], ttft_s=float("inf")))
    back = decode(encode(of(odd))).payload
    assert isinstance(back, events.ModelCallOpened)
    assert (back.call.usage_raw, back.call.ttft_s) == ([None, 1.0], None)


def test_keys_of_a_newer_version_are_ignored() -> None:
    data = json.loads(encode(of(events.Notice("info", "hello"))))
    data["colour"] = {"of": ["a", "newer", "version"]}
    assert decode(json.dumps(data).encode()).payload == events.Notice("info", "hello")


def test_a_type_of_a_newer_version_is_refused_by_name() -> None:
    data = json.loads(encode(of(events.Notice("info", "hello")))) | {"type": "tea_served"}
    with pytest.raises(StorageError, match=r"'tea_served' is not known .* newer version"):
        decode(json.dumps(data).encode())


def a_line(fields: str) -> bytes:
    return ('{"type":"notice","run_id":"r","session_id":null,"ts":"t",' + fields + "}").encode()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "not an event"),
        (b"\0\0\0", "not an event"),
        (b"[1]", "not an event"),
        (b"7", "not an event"),
        (b"\xff", "not an event"),
        (b"{}", "'type' is missing"),
        (b'{"type": "notice"}', "'run_id' is missing"),
        (b'{"type": ["notice"]}', "not an event"),
        (b'{"type":"notice","run_id":"r","session_id":null,"seq":1,"ts":"t"}', "'level' is miss"),
        (
            a_line('"seq":"1","level":"info","text":"x"'),
            "'1' is not a whole number",
        ),
        (
            a_line('"seq":1,"level":"info","text":null'),
            "None is not a text",
        ),
        (
            a_line('"seq":1,"level":"loud","text":"x"'),
            "loud",
        ),
        (b"[" * 100_000, "not an event"),
    ],
)
def test_what_is_no_event_is_refused_and_told(line: bytes, says: str) -> None:
    with pytest.raises(StorageError, match=says):
        decode(line)


def test_money_keeps_its_digits() -> None:
    finish = messages.StepFinish(usage=messages.TokenUsage(), cost_usd="0.10", reason="stop")
    assert plain(finish)["cost_usd"] == "0.10"
    assert str(Decimal(plain(finish)["cost_usd"])) == "0.10"
