"""Shards that come from machines nobody vouches for, joined or refused; never a traceback."""

import json
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from harness_batch import events, records
from harness_batch.app.finish import Copies
from harness_batch.app.merge import Merged, merge_runs
from harness_batch.codec import encode
from harness_batch.errors import StorageError, UsageError
from harness_batch.events import Event, Payload
from harness_batch.records import Run, Session

TIME = "2026-01-02T03:04:05.000006+00:00"
SHARDS = 3


def item(n: int) -> dict[str, Any]:
    """As `lock.json` has it."""
    texts = {"key": f"many/n={n}", "digest": f"d{n}", "name": "many", "folder": f"many_n={n}"}
    base = {"repo": "/shop", "ref": "HEAD", "base_sha": "0" * 40, "recipe": "/r/many.yaml"}
    mine = {"models": ["p/m"], "agent": "build", "params": {}, "matrix": {"n": n}}
    return {**texts, **base, **mine}


def lock(total: int = SHARDS) -> dict[str, Any]:
    items = [item(n) for n in range(1, total + 1)]
    return {"version": "0", "items": items, "shards": [[one["key"]] for one in items]}


def run(n: int, **changes: Any) -> Run:
    run = Run(run_id=f"run_{n:026}", version="0", argv=["run", "many.yaml"], started_at=TIME)
    known = {"shard_index": n, "shard_total": SHARDS, "lock_digest": "d"}
    return evolve(run, **{**known, **changes})


def session(n: int, **changes: Any) -> Session:
    told = item(n)
    made = Session(
        session_id=f"ses_{n:026}",
        run_id=run(n).run_id,
        item_key=told["key"],
        item_digest=told["digest"],
        recipe="many",
        agent="build",
        model="p/m",
        folder=told["folder"],
        started_at=TIME,
    )
    return evolve(made, **changes)


class Shards:
    """Folders of shards below `artifacts/`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.artifacts = folder / "artifacts"

    def shard(
        self,
        n: int,
        run_changes: Mapping[str, Any] = {},
        session_changes: Mapping[str, Any] = {},
        total: int = SHARDS,
    ) -> Path:
        """The folder of shard n, with one session that passed."""
        begun, made = run(n, **{"shard_total": total, **run_changes}), session(n, **session_changes)
        attempt = records.Attempt(
            attempt_id=f"att_{n:026}", session_id=made.session_id, n=1, started_at=TIME
        )
        ended = evolve(attempt, status="passed", answer="fine")
        told: list[tuple[Payload, str | None]] = [
            (events.RunStarted(begun), None),
            (events.SessionCreated(made), made.session_id),
            (events.SessionStarted(attempt), made.session_id),
            (events.SessionFinished(ended), made.session_id),
            (
                events.SessionUpdated(evolve(made, status="passed", finished_at=TIME)),
                made.session_id,
            ),
            (events.RunFinished(evolve(begun, finished_at=TIME, exit_code=0)), None),
        ]
        place = self.artifacts / f"shard-{n}"
        attempt_place = place / "items" / item(n)["folder"] / "attempt-1"
        attempt_place.mkdir(parents=True)
        (attempt_place / "answer.md").write_text(f"fine {n}")
        (place / "lock.json").write_text(json.dumps(lock(total)))
        lines = [
            encode(Event(begun.run_id, who, seq, TIME, payload))
            for seq, (payload, who) in enumerate(told, 1)
        ]
        (place / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
        return place

    def all(self) -> list[Path]:
        return [self.shard(n) for n in range(1, SHARDS + 1)]

    def merge(self, out: Path | None = None, *places: Path) -> Merged:
        target = out or self.folder / "joined"
        copies = Copies(project=self.folder)
        history = self.folder / "history.duckdb"
        return merge_runs(target, places or [self.artifacts], history, copies)


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    return Shards(tmp_path)


def test_shards_joined_into_the_folder_that_holds_them_can_be_joined_again(shards: Shards) -> None:
    shards.all()
    kept = (shards.artifacts / "shard-1" / "events.jsonl").read_bytes()
    for _ in range(2):
        merged = shards.merge(shards.artifacts, shards.artifacts)
        assert (merged.complete, len(merged.report.sessions)) == (True, SHARDS)
    assert (shards.artifacts / "shard-1" / "events.jsonl").read_bytes() == kept


def test_the_same_artifact_twice_and_out_inside_of_in_change_nothing(shards: Shards) -> None:
    shards.all()
    out = shards.artifacts / "out"
    for _ in range(2):
        merged = shards.merge(out, shards.artifacts, shards.artifacts / "shard-1")
        assert (merged.complete, merged.troubles) == (True, ())
        assert len(merged.report.sessions) == SHARDS


def test_a_run_is_not_joined_to_itself(shards: Shards) -> None:
    place = shards.shard(1)
    with pytest.raises(UsageError, match="but for OUT itself"):
        shards.merge(place, place)


def test_links_pipes_and_what_is_no_sessions_stay_where_they_are(shards: Shards) -> None:
    secret = shards.folder / "secret"
    secret.mkdir()
    (secret / "key").write_text("canary")
    first, second, third = shards.all()
    attempt = first / "items" / "many_n=1" / "attempt-1"
    os.mkfifo(attempt / "pipe")
    (attempt / "link").symlink_to(secret / "key")
    (attempt / "folder").symlink_to(secret)
    (first / "items" / "many_n=2").mkdir()
    (first / "items" / "many_n=2" / "answer.md").write_text("not mine")
    (attempt / "answer.md").chmod(0o4755)
    (second / "items").rename(second / "elsewhere")
    (second / "items").symlink_to("elsewhere")
    (third / "items" / "many_n=3").rename(third / "moved")
    (third / "items" / "many_n=3").symlink_to(third / "moved")
    joined = shards.merge().folder.path
    names = {str(path.relative_to(joined / "items")) for path in (joined / "items").rglob("*")}
    assert names == {"many_n=1", "many_n=1/attempt-1", "many_n=1/attempt-1/answer.md"}
    copied = joined / "items/many_n=1/attempt-1/answer.md"
    assert (copied.read_text(), copied.stat().st_mode & 0o7111) == ("fine 1", 0)


def test_a_link_that_lies_in_out_is_replaced_and_not_written_through(shards: Shards) -> None:
    shards.all()
    outside = shards.folder / "outside"
    outside.write_text("mine")
    place = shards.folder / "joined" / "items" / "many_n=1" / "attempt-1"
    place.mkdir(parents=True)
    (place / "answer.md").symlink_to(outside)
    shards.merge()
    assert (outside.read_text(), (place / "answer.md").read_text()) == ("mine", "fine 1")


@pytest.mark.parametrize("folder", ["../x", "..", ".", "", "/etc", "a/b", "a\0b"])
def test_a_folder_of_an_item_is_one_name(shards: Shards, folder: str) -> None:
    shards.shard(1, session_changes={"folder": folder})
    with pytest.raises(UsageError, match="is not the name of an item's folder"):
        shards.merge()


RUNS: dict[str, dict[str, Any]] = {
    "shard 0": {"shard_index": 0},
    "shard 4 of 3": {"shard_index": 4},
    "shard -1": {"shard_index": -1},
    "no total": {"shard_total": None},
    "no index": {"shard_index": None},
    "a billion shards": {"shard_total": 10**9},
    "no time": {"started_at": "yesterday"},
    "an empty time": {"started_at": ""},
    "before computers": {"started_at": "0001-01-01T00:00:00+00:00"},
    "beyond all years": {"started_at": "99999-01-01T00:00:00+00:00"},
}


@pytest.mark.parametrize("changes", RUNS.values(), ids=RUNS.keys())
def test_a_run_that_there_cannot_be_is_refused(shards: Shards, changes: dict[str, Any]) -> None:
    shards.shard(1, run_changes=changes)
    with pytest.raises(UsageError, match="is no journal of a run"):
        shards.merge()


LOCKS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a list": lambda lock: [lock],
    "no items": lambda lock: {"shards": lock["shards"]},
    "no shards": lambda lock: {"items": lock["items"]},
    "items as object": lambda lock: {**lock, "items": {"a": 1}},
    "item as text": lambda lock: {**lock, "items": ["x"]},
    "item without key": lambda lock: {**lock, "items": [{"digest": "d"}]},
    "no model": lambda lock: {**lock, "items": [{**lock["items"][0], "models": []}]},
    "models as text": lambda lock: {**lock, "items": [{**lock["items"][0], "models": "p/m"}]},
    "params as list": lambda lock: {**lock, "items": [{**lock["items"][0], "params": [1]}]},
    "base as number": lambda lock: {**lock, "items": [{**lock["items"][0], "base_sha": 7}]},
    "shards as object": lambda lock: {**lock, "shards": {"0": []}},
    "shard of numbers": lambda lock: {**lock, "shards": [[1]]},
}


@pytest.mark.parametrize("change", LOCKS.values(), ids=LOCKS.keys())
def test_a_lock_file_that_is_not_one_is_refused(
    shards: Shards, change: Callable[[dict[str, Any]], Any]
) -> None:
    place = shards.shard(1)
    (place / "lock.json").write_text(json.dumps(change(lock())))
    with pytest.raises(UsageError, match=r"lock\.json does not hold the resolved inputs"):
        shards.merge()


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"[" * 100_000, b"\xff\xfe", b'{"items": ['])
def test_a_lock_file_that_is_no_json_is_refused(shards: Shards, data: bytes) -> None:
    place = shards.shard(1)
    (place / "lock.json").write_bytes(data)
    with pytest.raises(UsageError, match=r"lock\.json does not hold the resolved inputs"):
        shards.merge()


def test_a_lock_file_that_is_a_pipe_or_too_large_is_refused_at_once(shards: Shards) -> None:
    file = shards.shard(1) / "lock.json"
    with file.open("r+b") as large:
        large.truncate(1 << 40)
    with pytest.raises(UsageError, match="no plain file of at most"):
        shards.merge()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UsageError, match="no plain file of at most"):
        shards.merge()


def test_an_item_that_two_shards_ran_is_refused(shards: Shards) -> None:
    shards.shard(1)
    shards.shard(2, session_changes={"item_key": item(1)["key"]})
    with pytest.raises(UsageError, match="both ran the item many/n=1"):
        shards.merge()


def test_of_other_kinds_of_folders_nothing_is_made(shards: Shards) -> None:
    shards.artifacts.mkdir()
    for words, data in (("no journal of a run", b""), ("not an event", b"\0\0\0\n{}\n")):
        place = shards.artifacts / "foreign"
        place.mkdir(exist_ok=True)
        notice = encode(Event("run_x", None, 1, TIME, events.Notice("warning", "hello")))
        (place / "events.jsonl").write_bytes(data + notice + b"\n")
        with pytest.raises((UsageError, StorageError), match=words):
            shards.merge()
    assert not (shards.folder / "joined").exists()


def test_events_of_sessions_that_nobody_created_end_nothing(shards: Shards) -> None:
    place = shards.shard(1)
    stray = records.Attempt(attempt_id="att_x", session_id="ses_x", n=9, started_at=TIME)
    job = records.Job(
        job_id="job_x",
        session_id="ses_x",
        child_session_id="ses_y",
        agent="a",
        description="\0",
        state="running",
        started_at=TIME,
    )
    told: list[Payload] = [
        events.SessionFinished(stray),
        events.JobUpdated(job),
        events.Notice("warning", "NUL \0 \ud800 ::error::x"),
    ]
    lines = (place / "events.jsonl").read_bytes().splitlines(keepends=True)
    more = [
        encode(Event("run_other", "ses_x", 90 + seq, TIME, payload)) + b"\n"
        for seq, payload in enumerate(told)
    ]
    (place / "events.jsonl").write_bytes(b"".join([*lines[:-1], *more, b'{"type": "run_fin']))
    merged = shards.merge()
    assert not merged.complete
    assert any("shard 1/3 died" in text for text in merged.troubles)


@pytest.mark.parametrize(
    "changes",
    [
        {"item_key": "many/n=\0\ud800"},
        {"started_at": "yesterday"},
        {"cost_usd": Decimal("1e40")},
        {"steps": 2**70},
    ],
    ids=["NUL", "time", "money", "number"],
)
def test_values_that_the_database_does_not_take_are_told(
    shards: Shards, changes: dict[str, Any]
) -> None:
    shards.shard(1, session_changes=changes)
    try:
        merged = shards.merge()
    except StorageError as error:
        assert "\n" not in str(error)  # noqa: PT017 - the other end is fine, too
    else:
        assert len(merged.report.sessions) == SHARDS + (1 if "item_key" in changes else 0)


def test_many_shards_are_joined_to_one_report_that_names_those_that_never_began(
    shards: Shards,
) -> None:
    total = 60
    for n in range(1, total, 2):
        shards.shard(n, total=total)
    merged = shards.merge()
    assert len(merged.report.sessions) == total
    assert sum("never began" in text for text in merged.troubles) == total // 2


def test_a_folder_that_cannot_be_written_is_told(shards: Shards) -> None:
    shards.all()
    (shards.folder / "file").write_text("")
    with pytest.raises(StorageError, match="Not a directory"):
        shards.merge(shards.folder / "file" / "joined")
