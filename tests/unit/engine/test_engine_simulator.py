"""The engine in made-up worlds: whatever models, tools, providers and stops do, the laws hold.

The engine, the scheduler, the journal and the judge are the real ones; time is virtual, and
hypothesis decides in what order trio's tasks run, so that a world plays the same way again.
"""

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from trio.testing import MockClock

from engine_invariants import faults
from engine_simulator import Played, play
from engine_worlds import GROUND, WORLDS, Act, Calls, Part, Says, Thinks, World
from harness_batch.errors import NetworkFailure, StorageError
from harness_batch.limits import Limits
from harness_batch.store.journal import Journal
from harness_batch.store.projection import Projection, rebuild
from harness_batch.store.replay import read_events
from harness_batch.store.rows import TABLES

VALID_ARGUMENTS = {"target": "ok/a", "behaviour": "ok"}


def played(world: World, folder: Path) -> Played:
    journal = Journal.open(folder / "events.jsonl", "run_1")
    try:
        return trio.run(play, world, folder, journal, clock=MockClock(autojump_threshold=0))
    finally:
        journal.close()


@given(WORLDS)
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_the_laws_hold_whatever_happens(world: World) -> None:
    with tempfile.TemporaryDirectory() as name:
        run = played(world, Path(name))
        told = list(read_events(run.journal))

    assert list(run.wrongs) == []
    assert list(faults(told)) == []
    assert all(session.status is not None for session in run.sessions)
    assert len(run.sessions) == len(world.parts)
    assert [a.detail for a in run.attempts if a.reason == "internal"] == []


def dump(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        return {
            table: connection.execute(f'SELECT * FROM "{table}" ORDER BY ALL').fetchall()
            for table in TABLES
        }


async def play_with_database(world: World, folder: Path, journal: Journal) -> Played:
    def broke(error: StorageError) -> None:
        raise error

    projection = Projection(folder / "live.duckdb", failed=broke, linger_seconds=0)
    journal.follow(projection.take)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(projection.run)
        run = await play(world, folder, journal)
        projection.close()
    return run


@pytest.mark.parametrize("parts", [1, 3])
def test_the_journal_gives_the_rows_that_were_written_while_it_grew(
    tmp_path: Path, parts: int
) -> None:
    """Here the clock also jumps while the database is written: that must not matter."""
    look, change = Calls("look", VALID_ARGUMENTS), Calls("change", VALID_ARGUMENTS)
    acts = (
        Act(pieces=(Thinks("hm"), Says("I look. €"), look, Calls("nosuch", "{"))),
        Act(pieces=(change,), fault=NetworkFailure("cut"), fault_after=2, pause=1.0),
        Act(pieces=(change, Calls("shell", '{"target"', whole=False)), reason="tool_calls"),
        Act(pieces=(look,), pause=500.0),
    )
    part = Part(acts=acts, rules=GROUND, limits=Limits(seconds=900.0), check_passes=True)
    journal = Journal.open(tmp_path / "events.jsonl", "run_1")
    world = World(parts=(part,) * parts, jobs=2, stop=(700.0, "interrupted"))
    run = trio.run(
        play_with_database, world, tmp_path, journal, clock=MockClock(autojump_threshold=0)
    )
    journal.close()

    rebuild(run.journal, tmp_path / "again.duckdb")
    live = dump(tmp_path / "live.duckdb")
    assert live == dump(tmp_path / "again.duckdb")
    assert len(live["session"]) == parts
    assert all(live[table] for table in ("model_call", "tool_call", "part", "message"))
    assert list(run.wrongs) == []
