"""The decoder of server-sent events."""

from itertools import pairwise

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.errors import ProtocolBroken
from harness_batch.models.sse import MAX_EVENT_BYTES, EventDecoder


def decoded(*chunks: bytes) -> list[tuple[str, str]]:
    decoder = EventDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [(event.event, event.data) for event in (*events, *decoder.end())]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [("message", "a")]),
        (b"data:a\n\n", [("message", "a")]),
        (b"data:  a\n\n", [("message", " a")]),
        (b"event: x\r\ndata: a\r\n\r\n", [("x", "a")]),
        (b"event: x\rdata: a\r\r", [("x", "a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("message", "a")]),
        (b": comment\n\ndata: a\n: in between\ndata: b\n\n", [("message", "a\nb")]),
        (b"id: 1\n\nid: 2\ndata: a\n\n", [("message", "a")]),
        (b"event: nothing\n\ndata: a\n\n", [("message", "a")]),
        (b"retry: 5\nstrange: 1\nno colon\ndata: a\n\n", [("message", "a")]),
        (b"data: a\n\ndata: b", [("message", "a"), ("message", "b")]),
        (b"data: a\n\nevent: y\ndata: b\n", [("message", "a"), ("y", "b")]),
        (b"data\n\n", []),
        (b"data: \xff\xfe\n\n", [("message", "\ufffd\ufffd")]),
        (b'error: {"code": 500}\n\n', [("error", '{"code": 500}')]),
        (b"", []),
    ],
)
def test_a_stream_gives_these_events(stream: bytes, events: list[tuple[str, str]]) -> None:
    assert decoded(stream) == events


FIELDS = st.sampled_from(["data: ", "data:", "event: ", ": ", "id: ", "other: ", ""])
TEXTS = st.text(
    alphabet=st.characters(exclude_characters="\r\n\0\ufeff", codec="utf-8"), max_size=9
)
LINES = st.tuples(FIELDS, TEXTS).map("".join) | st.just("")
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@settings(deadline=None)
@given(st.lists(LINES, max_size=12), ENDS, st.lists(st.integers(0, 120), max_size=12))
def test_however_the_reads_cut_the_stream_the_events_are_those_of_httpx_sse(
    lines: list[str], end: str, cuts: list[int]
) -> None:
    stream = (end.join([*lines, "", ""]) + end).encode()
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(places)]
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    known = EventSource(httpx.Response(200, headers=headers, content=stream)).iter_sse()
    assert decoded(*chunks) == [(event.event, event.data) for event in known if event.data]


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(1, 7))
def test_any_bytes_give_the_same_events_byte_by_byte_as_at_once(stream: bytes, size: int) -> None:
    pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert decoded(*pieces) == decoded(stream)


@pytest.mark.parametrize("line", [b"data: " + b"x" * 65_536 + b"\n", b"x" * 65_536])
def test_an_event_without_end_is_refused_before_it_fills_the_memory(line: bytes) -> None:
    with pytest.raises(ProtocolBroken, match="more than"):
        decoded(*[line] * (2 * MAX_EVENT_BYTES // len(line)))
