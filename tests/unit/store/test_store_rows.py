"""Events become rows."""

from itertools import pairwise

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch import events, messages
from harness_batch.events import Event
from harness_batch.store.rows import Row, Rows
from store_events import RUN_ID, numbered, session_story, story

STORY = numbered(story(2))


def final_rows(batches: list[list[Event]]) -> dict[tuple[str, object], Row]:
    """What a database would hold: table and key -> newest row."""
    rows, final = Rows(), {}

    def write() -> None:
        for table, new in rows.drain().items():
            for row in new:
                keys = ("part_id", "model_call_id", "tool_call_id", "seq", "message_id")
                key = next((row[k] for k in keys if k in row), None) if table != "patch" else None
                final[table, key or row.get("attempt_id") or row.get("session_id")] = row

    for batch in batches:
        for event in batch:
            rows.take(event)
        write()
    rows.finish()
    write()
    return final


@given(st.lists(st.integers(0, len(STORY)), max_size=8), st.integers(0, len(STORY)))
@settings(max_examples=60)
def test_the_rows_are_the_same_however_the_journal_is_batched(cuts: list[int], end: int) -> None:
    told = STORY[:end]
    edges = sorted({0, end, *(cut for cut in cuts if cut < end)})
    batches = [told[start:stop] for start, stop in pairwise(edges)]
    assert final_rows(batches) == final_rows([told])


def parts_after(kinds: set[type]) -> list[Row]:
    """Part rows of a journal that ends after the first event of the last such kind."""
    rows = Rows()
    for event in numbered(session_story(1, 1)):
        rows.take(event)
        kinds.discard(type(event.payload))
        if not kinds:
            break
    return list(rows.drain().get("part", []))


def test_a_streaming_part_is_no_row() -> None:
    assert parts_after({events.PartCreated}) == []
    assert parts_after({events.PartDelta}) == []


def test_a_whole_part_is_a_row_and_a_running_tool_is_none() -> None:
    rows = parts_after({events.PartUpdated, events.ToolCallFinished})
    assert [row["body"]["text"] for row in rows] == ["I will look é"]


def test_what_streamed_until_the_end_of_the_journal_is_kept() -> None:
    rows = Rows()
    for event in numbered(session_story(1, 1)):
        if isinstance(event.payload, events.PartUpdated | events.MessageUpdated):
            continue
        if isinstance(event.payload, events.SessionFinished):
            break
        rows.take(event)
    assert "part" not in rows.drain()
    rows.finish()
    bodies = [row["body"] for row in rows.drain()["part"]]
    assert bodies[0]["text"] == "I will look é"
    assert bodies[1]["state"] == {"type": "pending", "partial_input": '{"command"'}


def test_a_message_that_fails_closes_its_parts() -> None:
    rows = Rows()
    told = numbered(session_story(1, 1))
    message = next(e.payload for e in told if isinstance(e.payload, events.MessageCreated)).message
    for event in told:
        rows.take(event)
        if isinstance(event.payload, events.PartDelta):
            break
    aborted = events.MessageUpdated(evolve(message, error="aborted"))
    rows.take(Event(RUN_ID, "ses_0001", 99, "t", aborted))
    assert [row["body"]["text"] for row in rows.drain()["part"]] == ["I will "]


def test_a_delta_of_a_part_nobody_began_is_nothing() -> None:
    rows = Rows()
    rows.take(Event(RUN_ID, "s", 1, "t", events.PartDelta("p", "m", "x")))
    rows.finish()
    assert rows.drain() == {}


def test_a_users_text_is_a_row_when_it_is_created() -> None:
    rows = Rows()
    part = messages.Part(
        id="p", message_id="m", session_id="s", idx=0, body=messages.Text(text="fix it")
    )
    rows.take(Event(RUN_ID, "s", 1, "t", events.PartCreated(part)))
    assert [row["type"] for row in rows.drain()["part"]] == ["text"]
