"""Payloads for the store's tests: any at all, and whole runs that make sense."""

from collections.abc import Iterator
from decimal import Decimal
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from attrs import evolve, fields, has
from hypothesis import strategies as st

from harness_batch import events, messages, records
from harness_batch.events import Event, Payload
from harness_batch.messages import JsonObject

TIME = "2026-01-02T03:04:05.000006+00:00"
RUN_ID = "run_01J9Z3NDEKTSV4RRFFQ69G5FAV"

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=3)

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(-(2**63), 2**63),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    Any: json_values,
    JsonObject: json_objects,
    list[str]: st.lists(st.text(), max_size=3),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field's type."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is list:
        return st.lists(values_of(*get_args(hint)), max_size=3)
    if get_origin(hint) is tuple:  # of any length
        return st.lists(values_of(get_args(hint)[0]), max_size=2).map(tuple)
    if get_origin(hint) in (Union, UnionType):
        return st.one_of([values_of(member) for member in get_args(hint)])
    assert has(hint), hint
    hints = get_type_hints(hint)
    return st.builds(hint, **{field.name: values_of(hints[field.name]) for field in fields(hint)})


payloads: st.SearchStrategy[Payload] = values_of(events.Payload)
any_event: st.SearchStrategy[Event] = st.builds(
    Event, st.text(), st.none() | st.text(), st.integers(0, 2**40), st.text(), payloads
)

PRICE = records.Price(
    price_version="v1",
    provider="mine",
    model="m",
    unit="input",
    usd_per_mtok=Decimal(3),
    valid_from=TIME,
)


def session(n: int, **more: Any) -> records.Session:
    """Session n of the run."""
    known: dict[str, Any] = {
        "session_id": f"ses_{n:04}",
        "run_id": RUN_ID,
        "item_key": f"fix/{n:04}",
        "item_digest": "d1",
        "recipe": "fix",
        "agent": "build",
        "model": "mine/m",
    }
    return records.Session(**known | more)


def run(**more: Any) -> records.Run:
    """The run."""
    return records.Run(run_id=RUN_ID, version="1", argv=["fix.yaml"], started_at=TIME, **more)


def story(sessions: int, steps: int = 3) -> Iterator[tuple[Payload, str | None]]:
    """A run: each session answers `steps` times, calls a tool each time, and passes."""
    yield events.RunStarted(run()), None
    for n in range(sessions):
        yield from session_story(n, steps)
    yield events.Notice("warning", "a word \ud800"), None
    yield events.RunFinished(run(finished_at=TIME, exit_code=0)), None


def session_story(n: int, steps: int) -> Iterator[tuple[Payload, str | None]]:
    """One session, from creation to its end."""
    ses, att = f"ses_{n:04}", f"att_{n:04}"
    attempt = records.Attempt(attempt_id=att, session_id=ses, n=1, started_at=TIME)
    told: list[Payload] = [events.SessionCreated(session(n)), events.SessionStarted(attempt)]
    for step in range(steps):
        told.extend(step_story(ses, att, step))
    told.append(
        events.CheckFinished(
            records.CheckResult(
                session_id=ses, attempt_id=att, name="tests", kind="check", passed=True
            )
        )
    )
    told.append(
        events.PatchWritten(
            records.Patch(
                session_id=ses,
                attempt_id=att,
                files=1,
                added=2,
                removed=3,
                bytes=4,
                sha256="00",
                patch_id=None,
                applies=True,
                paths=["a"],
            )
        )
    )
    ended = evolve(attempt, status="passed", wall_s=2.0, working_s=1.5, answer="done")
    told.append(events.SessionFinished(ended))
    told.append(events.SessionUpdated(session(n, status="passed", finished_at=TIME)))
    for payload in told:
        yield payload, ses


def step_story(ses: str, att: str, step: int) -> Iterator[Payload]:
    """One model reply with streamed text and one tool call."""
    mark = f"{ses}_{step}"
    call = records.ModelCall(
        model_call_id=f"mcl_{mark}",
        session_id=ses,
        attempt_id=att,
        message_id=f"msg_{mark}",
        purpose="step",
        provider="mine",
        request_model="m",
        step=step,
        try_=1,
        started_at=TIME,
    )
    message = messages.Message(
        id=f"msg_{mark}", session_id=ses, attempt_id=att, role="assistant", created_at=TIME
    )
    text = messages.Part(
        id=f"prt_{mark}_0",
        message_id=message.id,
        session_id=ses,
        idx=0,
        body=messages.Text(text=""),
    )
    tool = evolve(
        text,
        id=f"prt_{mark}_1",
        idx=1,
        body=messages.ToolUse(call_id="c", name="bash", state=messages.Pending()),
    )
    tool_call = records.ToolCall(
        tool_call_id=f"tcl_{mark}",
        session_id=ses,
        attempt_id=att,
        message_id=message.id,
        tool="bash",
        input={"command": "ls"},
        started_at=TIME,
    )
    yield events.ModelCallOpened(call, 100, "0.01")
    yield events.MessageCreated(message)
    yield events.PartCreated(text)
    yield events.PartDelta(text.id, message.id, "I will ")
    yield events.PartDelta(text.id, message.id, "look é")
    yield events.PartUpdated(evolve(text, body=messages.Text(text="I will look é")))
    yield events.PartCreated(tool)
    yield events.PartDelta(tool.id, message.id, '{"command"')
    yield events.ToolCallStarted(tool_call)
    yield events.PermissionDecided(
        records.PermissionDecision(
            tool_call_id=tool_call.tool_call_id,
            session_id=ses,
            permission="bash",
            pattern="ls",
            action="allow" if step else "deny",
            rule="bash: *: allow",
            source="cli",
            decided_at=TIME,
        )
    )
    yield events.ToolCallFinished(
        evolve(tool_call, status="completed" if step else "denied", duration_s=0.5)
    )
    done = messages.Completed(input={"command": "ls"}, title="ls", output="a\nb")
    yield events.PartUpdated(
        evolve(tool, body=messages.ToolUse(call_id="c", name="bash", state=done))
    )
    yield events.PricesUsed([PRICE])
    yield events.ModelCallClosed(
        evolve(
            call,
            duration_s=1.0,
            input_tokens=100,
            output_tokens=10,
            cache_read_tokens=40,
            cost_usd=Decimal("0.25"),
            usage_raw={"in": 100},
        )
    )
    yield events.MessageUpdated(evolve(message, finish_reason="stop"))


def numbered(told: Iterator[tuple[Payload, str | None]]) -> list[Event]:
    """The payloads as events of the run."""
    return [
        Event(RUN_ID, session_id, seq, TIME, payload)
        for seq, (payload, session_id) in enumerate(told, 1)
    ]
