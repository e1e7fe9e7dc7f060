"""The journal against a real file, a real kill and a real full disk."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_batch.codec import encode
from harness_batch.errors import StorageError
from harness_batch.events import Event, Notice, PartDelta
from harness_batch.store.bus import EventBus
from harness_batch.store.deltas import DeltaSlices
from harness_batch.store.journal import Journal
from harness_batch.store.masking import Mask
from harness_batch.store.replay import last_envelope, read_events
from harness_batch.store.spellings import MASKED
from store_events import RUN_ID, TIME, story

WRITER = """
import sys
from pathlib import Path
from harness_batch.events import Notice
from harness_batch.store.journal import Journal
journal = Journal.open(Path(sys.argv[1]), sys.argv[2])
while True:
    event = journal.append(Notice("info", "x" * 3000), None)
    print(event.seq, flush=True)
"""

FULL_DISK = """
import json, resource, sys
from pathlib import Path
from harness_batch.errors import StorageError
from harness_batch.events import Notice
from harness_batch.store.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
journal = Journal.open(Path(sys.argv[1]), sys.argv[2])
written, told = 0, []
try:
    while True:
        journal.append(Notice("info", "x" * 700), None)
        written += 1
except StorageError as error:
    told.append(str(error))
try:
    journal.append(Notice("info", "refused"), None)
except StorageError as error:
    told.append(str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.repair()
last = journal.append(Notice("info", "after the repair"), None)
print(json.dumps([written, told, last.seq]))
"""


def open_journal(folder: Path) -> Journal:
    return Journal.open(folder / "events.jsonl", RUN_ID, now=lambda: TIME)


def test_an_event_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    event = journal.append(Notice("info", "hello"), "ses_1")
    assert journal.path.read_bytes() == encode(event) + b"\n"
    assert event == Event(RUN_ID, "ses_1", 1, TIME, Notice("info", "hello"))
    journal.close()


def test_followers_get_every_event_in_order(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    seen: list[Event] = []
    journal.follow(seen.append)
    for payload, session_id in story(2):
        journal.append(payload, session_id)
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert len(seen) == len(list(story(2)))
    journal.close()


def test_a_reopened_journal_goes_on_counting(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    for text in "abc":
        journal.append(Notice("info", text), None)
    journal.close()
    again = open_journal(tmp_path)
    assert again.append(Notice("info", "d"), None).seq == 4
    assert [event.seq for event in read_events(again.path)] == [1, 2, 3, 4]
    again.close()


def test_another_runs_journal_is_refused(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.append(Notice("info", "a"), None)
    journal.close()
    with pytest.raises(StorageError, match=f"belongs to {RUN_ID}, not to run_other"):
        Journal.open(journal.path, "run_other")


def test_an_event_of_a_newer_version_is_no_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    line = {"type": "tea_served", "run_id": RUN_ID, "session_id": None, "seq": 7, "ts": TIME}
    path.write_text(json.dumps(line) + "\n")
    journal = open_journal(tmp_path)
    assert journal.last_seq == 7
    journal.close()
    with pytest.raises(StorageError, match=r"events.jsonl:1: the event type 'tea_served'"):
        list(read_events(path))


def whole_journal(folder: Path) -> bytes:
    journal = open_journal(folder)
    for payload, session_id in story(1, 1):
        journal.append(payload, session_id)
    journal.close()
    data = journal.path.read_bytes()
    journal.path.unlink()
    return data


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_journal_cut_at_any_byte_goes_on_after_its_last_whole_event(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = whole_journal(folder)
    cut = data.draw(st.integers(0, len(whole)))
    tail = data.draw(st.sampled_from([b"", b"\0" * 100, b"\n", b"half\n", b"\0\0\n\0"]))
    path = folder / "events.jsonl"
    path.write_bytes(whole[:cut] + tail)
    kept = whole[:cut].count(b"\n") + (tail == b"\n" and whole[cut : cut + 1] == b"\n")
    assert [event.seq for event in read_events(path)] == list(range(1, kept + 1))
    journal = open_journal(folder)
    assert journal.append(Notice("info", "on"), None).seq == kept + 1
    journal.close()
    assert [event.seq for event in read_events(path)] == list(range(1, kept + 2))


def test_what_is_cut_off_is_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = whole_journal(tmp_path)
    path.write_bytes(whole + b'{"type":"notice","text":"half' + b"\0" * 50)
    open_journal(tmp_path).close()
    assert path.read_bytes() == whole
    aside = tmp_path / "events.jsonl.removed"
    assert aside.read_bytes() == b'{"type":"notice","text":"half\n'


def test_a_broken_line_in_the_middle_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    first, *others = whole_journal(tmp_path).splitlines(keepends=True)
    path.write_bytes(first + b"\0\0\0\n" + b"".join(others))
    with pytest.raises(StorageError, match=r"events\.jsonl:2: not an event"):
        list(read_events(path))


def test_a_journal_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot open the journal"):
        Journal.open(tmp_path / "missing" / "events.jsonl", RUN_ID)
    with pytest.raises(StorageError, match="cannot read the journal"):
        list(read_events(tmp_path / "missing"))
    assert last_envelope(tmp_path / "missing") is None


def test_a_full_device_is_loud(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.symlink_to("/dev/full")
    journal = Journal.open(path, RUN_ID)
    seen: list[Event] = []
    journal.follow(seen.append)
    with pytest.raises(StorageError, match="No space left"):
        journal.append(Notice("info", "a"), None)
    assert seen == []
    assert journal.last_seq == 0
    journal.close()


def test_after_half_a_line_nothing_is_written_until_it_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    argv = [sys.executable, "-c", FULL_DISK, str(path), RUN_ID]
    done = subprocess.run(argv, check=True, capture_output=True, timeout=30)
    written, told, last = json.loads(done.stdout)
    assert "cannot write to the journal" in told[0]
    assert "takes no more events: a line was cut short" in told[1]
    assert last == written + 1
    texts = [e.payload.text for e in read_events(path) if isinstance(e.payload, Notice)]
    assert texts == ["x" * 700] * written + ["after the repair"]


@pytest.mark.parametrize("round_", range(4))
def test_kill_9_loses_no_acknowledged_event(tmp_path: Path, round_: int) -> None:
    path = tmp_path / "events.jsonl"
    argv = [sys.executable, "-c", WRITER, str(path), RUN_ID]
    acknowledged = 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(random.Random(round_).randrange(1, 400)):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, child.stdout.read().split()[:-1])])
    seqs = [event.seq for event in read_events(path)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) >= acknowledged
    journal = Journal.open(path, RUN_ID)
    assert journal.append(Notice("info", "on"), None).seq == len(seqs) + 1
    journal.close()


async def test_many_callers_of_sync_share_it(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    synced: list[int] = []

    async def write_and_sync(n: int) -> None:
        journal.append(Notice("info", str(n)), None)
        await journal.sync()
        synced.append(n)

    async with trio.open_nursery() as nursery:
        for n in range(50):
            nursery.start_soon(write_and_sync, n)
    assert sorted(synced) == list(range(50))
    journal.close()


async def test_a_sync_that_fails_is_loud_and_ends_the_journal(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    journal = open_journal(tmp_path)
    journal.append(Notice("info", "a"), None)
    os.dup2(write_end, descriptor_of(journal.path))
    with pytest.raises(StorageError, match="cannot sync"):
        await journal.sync()
    with pytest.raises(StorageError, match="takes no more events: syncing it failed"):
        journal.append(Notice("info", "b"), None)
    with pytest.raises(StorageError, match="not safe"):
        await journal.sync()
    journal.close()
    os.close(read_end)
    os.close(write_end)


def descriptor_of(path: Path) -> int:
    """The number under which this process has a file open."""
    for link in Path("/proc/self/fd").iterdir():
        if link.is_symlink() and os.path.realpath(link) == str(path.resolve()):
            return int(link.name)
    raise AssertionError(f"{path} is not open")


def test_secrets_are_masked_in_the_file_and_for_the_followers(tmp_path: Path) -> None:
    secret = 'sk-very"secret'
    journal = Journal.open(tmp_path / "events.jsonl", RUN_ID, mask=Mask((secret,)))
    seen: list[Event] = []
    journal.follow(seen.append)
    journal.append(Notice("info", f"the key is {secret}!"), None)
    assert [event.payload for event in seen] == [Notice("info", f"the key is {MASKED}!")]
    assert list(read_events(journal.path)) == seen
    journal.close()


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def slices(path: Path) -> list[str]:
    return [e.payload.delta for e in read_events(path) if isinstance(e.payload, PartDelta)]


async def test_deltas_are_shown_at_once_and_journaled_in_slices(tmp_path: Path) -> None:
    journal, bus, clock = open_journal(tmp_path), EventBus(), Clock()
    journal.follow(bus.follow)
    deltas = DeltaSlices(journal, bus, clock=clock)
    with bus.subscribe() as seen:
        for piece in ("a", "b", "c"):
            deltas.add(PartDelta("p", "m", piece), "s")
            clock.seconds += 0.02
        assert slices(journal.path) == []
        clock.seconds += 0.02
        deltas.add(PartDelta("p", "m", "d"), "s")
        assert slices(journal.path) == ["abcd"]
        deltas.add(PartDelta("p", "m", "x" * 3000), "s")
        assert slices(journal.path) == ["abcd", "x" * 3000]
        deltas.add(PartDelta("p", "m", "end"), "s")
        deltas.finish("p")
        assert slices(journal.path) == ["abcd", "x" * 3000, "end"]
        bus.close()
        shown = [event.payload async for event in seen]
    assert shown == [PartDelta("p", "m", text) for text in ("a", "b", "c", "d", "x" * 3000, "end")]
    deltas.finish("p")
    journal.close()


async def test_a_slice_is_journaled_while_its_stream_pauses(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    journal = open_journal(tmp_path)
    deltas = DeltaSlices(journal, EventBus())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deltas.keep_flushing)
        deltas.add(PartDelta("p", "m", "a"), "s")
        await trio.sleep(0.2)
        assert slices(journal.path) == ["a"]
        deltas.add(PartDelta("p", "m", "b"), "s")
        await trio.sleep(0.2)
        assert slices(journal.path) == ["a", "b"]
        nursery.cancel_scope.cancel()
    journal.close()


async def test_a_secret_cut_in_two_by_the_stream_is_masked(tmp_path: Path) -> None:
    mask = Mask(("sk-very-secret",))
    journal = Journal.open(tmp_path / "events.jsonl", RUN_ID, mask=mask)
    bus = EventBus()
    deltas = DeltaSlices(journal, bus, mask=mask, clock=Clock())
    with bus.subscribe() as seen:
        for piece in ("key: sk-ve", "ry-sec", "ret, sk-"):
            deltas.add(PartDelta("p", "m", piece), "s")
        deltas.finish("p")
        bus.close()
        shown = "".join([e.payload.delta async for e in seen if isinstance(e.payload, PartDelta)])
    assert shown == "".join(slices(journal.path)) == f"key: {MASKED}, sk-"
    journal.close()


async def test_a_slow_subscriber_loses_events_and_is_told_how_many(tmp_path: Path) -> None:
    journal, bus = open_journal(tmp_path), EventBus(capacity=3)
    journal.follow(bus.follow)
    with bus.subscribe() as slow:
        for n in range(5):
            journal.append(Notice("info", str(n)), None)
        bus.close()
        journal.append(Notice("info", "after the end"), None)
        assert [event.seq async for event in slow] == [1, 2, 3]
        assert slow.dropped == 2
    with bus.subscribe() as late:
        assert [event async for event in late] == []
    journal.close()
