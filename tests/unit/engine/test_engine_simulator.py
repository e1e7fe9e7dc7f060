"""The engine in made-up worlds: whatever models, tools, providers and stops do, the laws hold.

The engine, the scheduler, the journal and the judge are the real ones; time is virtual, and
hypothesis decides in what order trio's tasks run, so that a world plays the same way again.
"""

import tempfile
from pathlib import Path

import trio
from hypothesis import HealthCheck, given, settings
from trio.testing import MockClock

from engine_invariants import faults
from engine_simulator import Played, play
from engine_worlds import WORLDS, World
from harness_batch.store.journal import Journal
from harness_batch.store.replay import read_events


def played(world: World, folder: Path) -> Played:
    journal = Journal.open(folder / "events.jsonl", "run_1")
    try:
        return trio.run(play, world, folder, journal, clock=MockClock(autojump_threshold=0))
    finally:
        journal.close()


@given(WORLDS)
@settings(
    max_examples=150,
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
