"""Recordings as files: what goes out comes back, and what is none is told with its faults."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_batch.config.record import ModelInfo
from harness_batch.errors import FaultyInput
from harness_batch.messages import TokenUsage
from harness_batch.models.recording import (
    Called,
    RecordedCall,
    RecordedSession,
    Recording,
    Result,
    Said,
    Thought,
    Trouble,
)
from harness_batch.models.recording_file import read_recording, recording_text

TEXTS = st.text(max_size=30)
NAMES = st.text("abc_", min_size=1, max_size=5)
BLOCKS = st.one_of(
    st.builds(Said, TEXTS),
    st.builds(Thought, text=TEXTS, signature=st.none() | TEXTS, redacted=st.booleans()),
    st.builds(
        Called,
        call_id=NAMES,
        name=NAMES,
        arguments=TEXTS,
        whole=st.booleans(),
        result=st.none() | st.builds(Result, failed=st.booleans(), output=TEXTS),
    ),
)
COUNTS = st.integers(0, 10**9)
CALLS = st.builds(
    RecordedCall,
    model=NAMES,
    purpose=st.sampled_from(["step", "compaction"]),
    blocks=st.lists(BLOCKS, max_size=3).map(tuple),
    finish=st.sampled_from([None, "stop", "tool_calls", "length"]),
    usage=st.none() | st.builds(TokenUsage, input=COUNTS, output=COUNTS, cache_read=COUNTS),
    trouble=st.none()
    | st.builds(
        Trouble,
        kind=st.sampled_from(["rate_limit", "auth", "quota"]),
        message=TEXTS,
        status=st.none() | st.integers(400, 599),
    ),
)
SESSIONS = st.builds(
    RecordedSession,
    recipe=NAMES,
    agent=NAMES,
    prompts=st.lists(TEXTS, max_size=2).map(tuple),
    status=st.none() | NAMES,
    reason=st.none() | NAMES,
    calls=st.lists(CALLS, max_size=3).map(tuple),
    checks=st.dictionaries(NAMES, st.booleans(), max_size=2),
)
RECORDINGS = st.builds(
    Recording,
    recipe=NAMES,
    item=NAMES,
    params=st.dictionaries(NAMES, st.integers() | TEXTS, max_size=2),
    matrix=st.dictionaries(NAMES, st.booleans() | TEXTS, max_size=2),
    agent=NAMES,
    base=st.none() | st.just("a" * 40),
    options=st.lists(st.tuples(st.sampled_from(["allow", "limit"]), TEXTS), max_size=2).map(tuple),
    windows=st.dictionaries(
        NAMES, st.builds(ModelInfo, context=st.none() | COUNTS, output=st.none() | COUNTS)
    ),
    sessions=st.lists(SESSIONS, min_size=1, max_size=3).map(
        lambda found: tuple(evolve(s, parent=at - 1 if at else None) for at, s in enumerate(found))
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(RECORDINGS)
def test_what_was_written_is_read_again(tmp_path: Path, recording: Recording) -> None:
    file = tmp_path / "recording.json"
    file.write_bytes(recording_text(recording).encode())

    assert read_recording(file) == recording


def test_a_text_of_several_lines_stands_as_its_lines() -> None:
    session = RecordedSession(recipe="r", agent="a", prompts=("one\ntwo",))
    text = recording_text(
        Recording(
            recipe="r", item="r", params={}, matrix={}, agent="a", base=None, sessions=(session,)
        )
    )

    assert json.loads(text)["sessions"][0]["prompts"] == [["one", "two"]]


SESSION: dict[str, Any] = {"recipe": "r", "agent": "a", "calls": []}
CALL: dict[str, Any] = {"model": "m/x", "purpose": "step"}


def document(**keys: Any) -> dict[str, Any]:
    return {"recording": 1, "recipe": "r", "item": "r", "sessions": [SESSION], **keys}


def with_call(**keys: Any) -> dict[str, Any]:
    return document(sessions=[{**SESSION, "calls": [{**CALL, **keys}]}])


def test_the_least_recording_is_one(tmp_path: Path) -> None:
    file = tmp_path / "least.json"
    file.write_text(json.dumps(document()))

    assert read_recording(file).sessions[0].calls == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\x00\xff\xfe", "UTF-8"),
        (b"[" * 200_000, "nested too deep"),
        (b"9" * 10_000, "is no recording"),
        (b"[]", "is no recording"),
        (b'{"a": 1}', "is no recording"),
        (document(recording=2), "1 was expected"),
        (document(sessions=[]), "sessions"),
        (document(sessions=[3]), "sessions"),
        (document(surprise=1), "surprise"),
        (document(base="; rm -rf /"), "base"),
        (document(params=[]), "params"),
        (document(options=[["sandbox", "off"]]), "options"),
        (document(windows={"m": {"context": -1}}), "windows"),
        (document(sessions=[SESSION, SESSION]), "parent"),
        (document(sessions=[SESSION, {**SESSION, "parent": 7}]), "parent"),
        (document(sessions=[{**SESSION, "parent": 0}]), "parent"),
        (document(sessions=[SESSION, {**SESSION, "parent": "x"}]), "parent"),
        (with_call(purpose="fun"), "purpose"),
        (with_call(reply=[{}]), "reply"),
        (with_call(reply=[{"text": 3}]), "reply"),
        (with_call(reply=[{"call": "c", "name": "bash"}]), "reply"),
        (with_call(reply=[{"text": "a", "thinking": "b"}]), "reply"),
        (with_call(error={"kind": "odd", "message": "m"}), "kind"),
        (with_call(usage={"input": -1}), "usage"),
        (with_call(usage={"input": 1.5}), "usage"),
    ],
)
def test_a_faulty_file_is_told_with_its_faults(tmp_path: Path, content: Any, said: str) -> None:
    file = tmp_path / "faulty.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    with pytest.raises(FaultyInput) as refused:
        read_recording(file)

    assert said in str(refused.value)
    assert str(file) in str(refused.value)
    assert len(str(refused.value)) < 20_000


MUTATIONS: list[Callable[[Any], Any]] = [lambda v: None, lambda v: [v], lambda v: {"x": v}, str]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(RECORDINGS, st.data())
def test_any_change_of_a_file_gives_a_recording_or_faults(
    tmp_path: Path, recording: Recording, data: st.DataObject
) -> None:
    found: Any = json.loads(recording_text(recording))
    spot, keys = found, list(found)
    while isinstance(spot, dict | list) and spot:
        places = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        key = data.draw(st.sampled_from(places))
        if data.draw(st.booleans()) or not isinstance(spot[key], dict | list) or not spot[key]:
            spot[key] = data.draw(st.sampled_from(MUTATIONS))(spot[key])
            break
        spot = spot[key]
    del keys
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(found))

    with suppress(FaultyInput):
        assert read_recording(file).sessions
