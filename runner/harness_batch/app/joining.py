"""The events of one run out of those of its shards. Pure but for reading their journals.

The same shards give the same events, to the byte: what has no time or id of its own gets one that
is made of theirs.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from itertools import chain
from typing import Final

from attrs import Factory, define, evolve, frozen
from ulid import ULID

from harness_batch.app.last_words import KILLED, close_attempts, close_children, close_sessions
from harness_batch.app.lock_file import LockedItem
from harness_batch.app.parts import Part, Parts
from harness_batch.app.resume import Earlier
from harness_batch.batch.exit_code import exit_code
from harness_batch.events import (
    Event,
    Notice,
    Payload,
    RunFinished,
    RunStarted,
    SessionCreated,
    SessionUpdated,
)
from harness_batch.records import Run, Session
from harness_batch.store.replay import read_events

SHOWN: Final = 20
"""Items that a notice names."""


@frozen
class _Said:
    """An event without its place in the merged run."""

    session_id: str | None
    ts: str
    payload: Payload


@define
class _Closing:
    """A log for the ends that a dead shard did not write itself."""

    known: Earlier
    at: str
    said: list[_Said] = Factory(list)

    def append(self, payload: Payload, session_id: str | None) -> None:
        """Keep it, and know of it."""
        self.said.append(_Said(session_id, self.at, payload))
        self.known.take(Event("", session_id, 0, self.at, payload))

    async def sync(self) -> None:
        """Nothing is on its way to a disk."""


def merged_id(parts: Iterable[Part]) -> str:
    """The id of the run that these make: as old as the oldest, and always the same."""
    runs = sorted((part.run.started_at, part.run.run_id) for part in parts)
    return f"run_{_ulid(runs[0][0], *(run_id for _, run_id in runs))}"


def joined(found: Parts) -> Iterator[Event]:
    """All events in order: the run's start, shard after shard, what is missing, the run's end."""
    run_id = merged_id(found.parts)
    sessions: dict[str, Session] = {}
    for seq, said in enumerate(_said(found, run_id), 1):
        payload = said.payload
        match payload:
            case SessionUpdated(session=session):
                sessions[session.session_id] = session
            case RunFinished(run=run):
                payload = RunFinished(_ended(run, found, sessions.values()))
            case _:
                pass
        yield Event(run_id, said.session_id, seq, said.ts, payload)


def _said(found: Parts, run_id: str) -> Iterator[_Said]:
    run = _run(found.parts, run_id)
    yield _Said(None, run.started_at, RunStarted(run))
    created: set[str] = set()
    told: set[str] = set()
    for part in found.parts:
        for said in chain(_of_part(part, run_id), _ends(part, run_id)):
            match said.payload:
                case SessionCreated(session=session) if session.depth == 0:
                    created.add(session.item_key)
                case Notice(text=text) if said.session_id is None and text in told:
                    continue  # every shard tells what is true of the whole run
                case Notice(text=text):
                    told.add(text)
                case _:
                    pass
            yield said
    over = max(part.run.finished_at or part.last_at for part in found.parts)
    for text in troubles(found):
        yield _Said(None, over, Notice("warning", text))
    for item in _lost(found, created):
        yield from _never_run(item, run_id, over)
    yield _Said(None, over, RunFinished(evolve(run, finished_at=over)))


def _run(parts: tuple[Part, ...], run_id: str) -> Run:
    first = parts[0].run
    budgets = [part.run.budget_usd for part in parts]
    known = [budget for budget in budgets if budget is not None]
    return evolve(
        first,
        run_id=run_id,
        argv=_without_shard(first.argv),
        started_at=min(part.run.started_at for part in parts),
        finished_at=None,
        exit_code=None,
        shard_index=None,
        shard_total=None,
        budget_usd=sum(known, Decimal(0)) if known else None,
        joined_runs=[part.run.run_id for part in parts],
    )


def _without_shard(argv: list[str]) -> list[str]:
    kept: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--shard":
            next(words, None)
        elif not word.startswith("--shard="):
            kept.append(word)
    return kept


def _of_part(part: Part, run_id: str) -> Iterator[_Said]:
    for event in read_events(part.folder.journal):
        match event.payload:
            case RunStarted() | RunFinished():
                continue
            case SessionCreated(session=session):
                payload: Payload = SessionCreated(evolve(session, run_id=run_id))
            case SessionUpdated(session=session):
                payload = SessionUpdated(evolve(session, run_id=run_id))
            case other:
                payload = other
        yield _Said(event.session_id, event.ts, payload)


def _ends(part: Part, run_id: str) -> Iterator[_Said]:
    """What a shard that died could not write any more."""
    if part.ended:
        return
    log = _Closing(part.known, part.last_at)
    end = evolve(KILLED, at=part.last_at)
    close_attempts(part.known, log, end)
    close_children(part.known, log, end)
    close_sessions(part.known, log, end)
    for said in log.said:
        match said.payload:
            case SessionUpdated(session=session):
                yield evolve(said, payload=SessionUpdated(evolve(session, run_id=run_id)))
            case _:
                yield said


def troubles(found: Parts) -> Iterator[str]:
    """What is missing, dead, empty or there twice, in words."""
    yield from found.notices
    shards = found.lock.shards if found.lock else ()
    total = found.parts[0].run.shard_total
    for index in found.missing:
        keys = shards[index - 1] if index <= len(shards) else ()
        yield f"shard {index}/{total} never began{_named(keys)}"
    for part in found.dead:
        yield f"{part.name} died: its journal has no end"
    for part in found.parts:
        if part.ended and not part.known.sessions:
            yield f"{part.name} is empty: it had no item to run"


def _named(keys: Sequence[str]) -> str:
    if not keys:
        return ""
    more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
    return f"; its items: {', '.join(keys[:SHOWN])}{more}"


def _lost(found: Parts, created: set[str]) -> Iterator[LockedItem]:
    """Items of the whole plan that no shard got to. Only shards know of a whole plan."""
    if found.lock is not None and found.parts[0].run.shard_total:
        yield from (item for item in found.lock.items if item.key not in created)


def _never_run(item: LockedItem, run_id: str, at: str) -> Iterator[_Said]:
    """A test case for an item whose machine never came to it: not passed, and not left out."""
    session = Session(
        session_id=f"ses_{_ulid(at, run_id, item.key)}",
        run_id=run_id,
        item_key=item.key,
        item_digest=item.digest,
        recipe=item.name,
        agent=item.agent,
        model=item.model,
        params=item.params,
        matrix=item.matrix,
        repo=item.repo,
        ref=item.ref,
        base_sha=item.base_sha,
        recipe_file=item.recipe,
        folder=item.folder,
        started_at=at,
    )
    yield _Said(session.session_id, at, SessionCreated(session))
    ended = evolve(
        session,
        status="errored",
        reason="shard_missing",
        detail="the shard that had this item never began, or died before its turn",
        finished_at=at,
    )
    yield _Said(session.session_id, at, SessionUpdated(ended))


def _ended(run: Run, found: Parts, sessions: Iterable[Session]) -> Run:
    codes = {part.run.exit_code for part in found.parts}
    signal = next((code for code in (143, 130) if code in codes), None)
    stopped = "a shard's stop" if 4 in codes else None
    return evolve(run, exit_code=exit_code(sessions, stopped=stopped, signal=signal))


def _ulid(at: str, *words: str) -> ULID:
    """An id of that time which the words decide."""
    when = int(datetime.fromisoformat(at).timestamp() * 1000).to_bytes(6, "big")
    return ULID(when + blake2b("\0".join(words).encode(), digest_size=10).digest())
