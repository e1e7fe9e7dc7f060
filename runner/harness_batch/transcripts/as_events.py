"""A transcript as the events of a run that ended: the same file always gives the same events.

A session of the plan is the recipe named like the agent; its children follow it. `passed` means
that the agent ended its turn by itself: no check ran.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from attrs import evolve, frozen

from harness_batch import events
from harness_batch.events import Event, Payload
from harness_batch.messages import (
    Completed,
    Failed,
    JsonObject,
    Message,
    Part,
    PartBody,
    Running,
    Text,
    ToolUse,
)
from harness_batch.records import Attempt, ModelCall, Run, Session, ToolCall, ToolStatus
from harness_batch.transcripts.record import Called, Said, Transcript
from harness_batch.transcripts.stable_ids import StableIds, id_of

Priced: TypeAlias = Callable[[ModelCall, Called], ModelCall]
"""Puts the cost on the row of a call."""


@frozen(kw_only=True)
class Family:
    """A session of the plan with the sessions below it."""

    root: Transcript
    children: tuple[Transcript, ...] = ()


def families(transcripts: Sequence[Transcript]) -> tuple[Family, ...]:
    """One for each session without a parent that is here."""
    there = {one.id: one for one in transcripts}

    def root_of(one: Transcript) -> str:
        seen = {one.id}
        while one.parent_id in there and one.parent_id not in seen:
            one = there[one.parent_id]
            seen.add(one.id)
        return one.id

    found: dict[str, list[Transcript]] = {}
    for one in there.values():
        found.setdefault(root_of(one), []).append(one)
    return tuple(
        Family(
            root=there[root],
            children=tuple(one for one in members if one.id != root),
        )
        for root, members in found.items()
        if any(one.said for one in members)
    )


def run_events(family: Family, priced: Priced) -> tuple[Event, ...]:
    """All events of the family's run, in order."""
    everyone = (family.root, *family.children)
    times = [said.at for one in everyone for said in one.said]
    begin, end = min(times), max(times)
    seed = f"{family.root.agent}:{family.root.id}"
    run_id = id_of("run", seed, begin)
    ids = {one.id: id_of("ses", f"{one.agent}:{one.id}", _begin(one, begin)) for one in everyone}
    run = Run(
        run_id=run_id,
        version=f"{family.root.agent} {family.root.version or ''}".rstrip(),
        argv=["import", family.root.agent],
        trigger="import",
        started_at=_text(begin),
        finished_at=_text(end),
    )
    told = [
        Event(run_id, session_id, 0, ts, payload)
        for one in everyone
        for session_id, ts, payload in _SessionEvents(family.root, one, run_id, ids, priced).all()
    ]
    closing = Event(run_id, None, 0, _text(end), events.RunFinished(run))
    return tuple(evolve(event, seq=seq) for seq, event in enumerate([*told, closing], 1))


def _begin(one: Transcript, otherwise: datetime) -> datetime:
    return min((said.at for said in one.said), default=otherwise)


def _text(at: datetime) -> str:
    return at.isoformat()


@frozen
class _SessionEvents:
    """The events of one session."""

    root: Transcript
    one: Transcript
    run_id: str
    ids: Mapping[str, str]
    priced: Priced

    def all(self) -> Iterator[tuple[str, str, Payload]]:
        """Session, time and payload of each."""
        session_id = self.ids[self.one.id]
        new = StableIds(f"{self.one.agent}:{self.one.id}")
        begin = _begin(self.one, _begin(self.root, _EPOCH))
        end = max((said.at for said in self.one.said), default=begin)
        attempt_id = new.of("att", "1", begin)
        session = self._session(session_id, begin, end)
        attempt = Attempt(
            attempt_id=attempt_id,
            session_id=session_id,
            n=1,
            status=session.status,
            reason=session.reason,
            wall_s=(end - begin).total_seconds(),
            started_at=_text(begin),
            finished_at=_text(end),
            answer=_answer(self.one),
        )
        yield session_id, _text(begin), events.SessionUpdated(session)
        step = 0
        for said in self.one.said:
            message_id = new.of("msg", said.id, said.at)
            owner = _Owner(session_id, attempt_id, message_id, new)
            ts = _text(said.at)
            yield session_id, ts, events.MessageUpdated(self._message(said, owner))
            for number, called in enumerate(said.calls, 1):
                step += 1
                row = self._model_call(said, called, owner, step, number)
                yield session_id, ts, events.ModelCallClosed(self.priced(row, called))
            for payload in _parts(said, owner):
                yield session_id, ts, payload
        yield session_id, _text(end), events.SessionFinished(attempt)

    def _session(self, session_id: str, begin: datetime, end: datetime) -> Session:
        one, root = self.one, self.root
        child = one is not root
        return Session(
            session_id=session_id,
            run_id=self.run_id,
            item_key=f"{root.agent}/{root.id}",
            item_digest=f"{root.agent}:{root.id}",
            recipe=root.agent,
            agent=one.role or one.agent,
            model=next(iter(one.models), f"{one.agent}/unknown"),
            parent_id=self.ids.get(one.parent_id or "", self.ids[root.id]) if child else None,
            depth=1 if child else 0,
            repo=one.folder,
            ref=one.branch,
            base_sha=one.commit,
            status=one.ending,
            reason=_REASONS[one.ending],
            attempts=1,
            started_at=_text(begin),
            finished_at=_text(end),
        )

    def _message(self, said: Said, owner: "_Owner") -> Message:
        model = f"{said.calls[0].provider}/{said.calls[0].model}" if said.calls else None
        return Message(
            id=owner.message_id,
            session_id=owner.session_id,
            attempt_id=owner.attempt_id,
            role=said.role,
            created_at=_text(said.at),
            model=model,
            agent=self.one.role or self.one.agent,
            finish_reason=said.finish,
            error=said.error,
        )

    def _model_call(
        self, said: Said, called: Called, owner: "_Owner", step: int, number: int
    ) -> ModelCall:
        usage = called.usage
        return ModelCall(
            model_call_id=owner.new.of("mcl", f"{said.id}:{number}", said.at),
            session_id=owner.session_id,
            attempt_id=owner.attempt_id,
            message_id=owner.message_id,
            purpose="step",
            provider=called.provider,
            request_model=called.model,
            response_model=called.model,
            response_id=called.response_id or said.id,
            step=step,
            try_=1,
            started_at=_text(said.at),
            duration_s=called.duration_s,
            finish_reason=said.finish,
            error_kind=called.error_kind,
            input_tokens=usage.input if usage else None,
            cache_read_tokens=usage.cache_read if usage else None,
            cache_write_5m_tokens=usage.cache_write_5m if usage else None,
            cache_write_1h_tokens=usage.cache_write_1h if usage else None,
            output_tokens=usage.output if usage else None,
            reasoning_tokens=usage.reasoning if usage else None,
            usage_raw=called.usage_raw,
            provider_cost_usd=called.reported_usd,
        )


@frozen
class _Owner:
    """Whom rows belong to, and where ids come from."""

    session_id: str
    attempt_id: str
    message_id: str
    new: StableIds


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_REASONS = {"passed": None, "errored": "provider_unavailable", "cancelled": "interrupted"}


def _answer(one: Transcript) -> str | None:
    """What the agent said last."""
    for said in reversed(one.said):
        texts = [body.text for body in said.bodies if isinstance(body, Text)]
        if said.role == "assistant" and texts:
            return "".join(texts)
    return None


def _parts(said: Said, owner: _Owner) -> Iterator[Payload]:
    for idx, body in enumerate(said.bodies):
        key = f"{said.id}:{idx}"
        part = Part(
            id=owner.new.of("prt", key, said.at),
            message_id=owner.message_id,
            session_id=owner.session_id,
            idx=idx,
            body=_ended(body),
        )
        yield events.PartUpdated(part)
        if isinstance(body, ToolUse):
            yield events.ToolCallFinished(_tool_call(body, said, owner, key))


def _ended(body: PartBody) -> PartBody:
    """A tool call that has no result in the file was interrupted."""
    if isinstance(body, ToolUse) and isinstance(body.state, Running):
        failed = Failed(input=body.state.input, error="there is no result in the transcript")
        return ToolUse(call_id=body.call_id, name=body.name, state=failed)
    return body


def _tool_call(body: ToolUse, said: Said, owner: _Owner, key: str) -> ToolCall:
    server = body.name.split("__")[1] if body.name.startswith("mcp__") else None
    given: JsonObject = {}
    status: ToolStatus = "interrupted"
    match body.state:
        case Completed() as done:
            given, status = done.input, "completed"
        case Failed() as failed:
            given, status = failed.input, "error"
        case Running() as running:
            given = running.input
        case _:
            pass
    done_state = body.state if isinstance(body.state, Completed) else None
    return ToolCall(
        tool_call_id=owner.new.of("tcl", key, said.at),
        session_id=owner.session_id,
        attempt_id=owner.attempt_id,
        message_id=owner.message_id,
        tool=body.name,
        input=given,
        started_at=_text(said.at),
        server=server,
        status=status,
        error=body.state.error if isinstance(body.state, Failed) else None,
        output_bytes=len(done_state.output.encode(errors="replace")) if done_state else None,
        duration_s=done_state.duration_ms / 1000 if done_state and done_state.duration_ms else None,
    )
