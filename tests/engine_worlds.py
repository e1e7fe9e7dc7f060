"""What can happen to sessions: replies, faults, stops, limits, as hypothesis makes them up."""

from decimal import Decimal
from typing import Literal, TypeAlias, TypeVar

from attrs import Factory, frozen
from hypothesis import strategies as st

from harness_batch.errors import (
    AuthFailed,
    ContextOverflow,
    ModelRejected,
    NetworkFailure,
    ProtocolBroken,
    ProviderError,
    ProviderTimeout,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from harness_batch.limits import Limits
from harness_batch.messages import FinishReason, JsonObject
from harness_batch.recipe.record import RetryRule
from harness_batch.rules import Rule

T = TypeVar("T")
Behaviour = Literal["ok", "error", "slow", "stuck", "huge", "refuses"]


@frozen
class Says:
    text: str


@frozen
class Thinks:
    text: str


@frozen
class Calls:
    """A tool call; `arguments` as a text go out as they are."""

    name: str
    arguments: JsonObject | str
    whole: bool = True
    """False: the arguments begin and never end."""


Piece: TypeAlias = Says | Thinks | Calls


@frozen(kw_only=True)
class Act:
    """What the model answers to one request."""

    pieces: tuple[Piece, ...] = ()
    reason: FinishReason | None = None
    """None: what the pieces suggest."""
    fault: ProviderError | None = None
    fault_after: int = 0
    """Events that come before the fault."""
    ends: bool = True
    """False: the stream ends without its end mark."""
    counted: bool = True
    """Usage is reported."""
    pause: float = 0.0
    """Seconds before each batch."""
    at_once: bool = False
    """All events are one batch."""


@frozen(kw_only=True)
class Part:
    """One session's part in the play."""

    acts: tuple[Act, ...]
    small_acts: tuple[Act, ...] = ()
    """What the small model answers."""
    rules: tuple[Rule, ...] = ()
    limits: Limits = Factory(Limits)
    on_denial: Literal["continue", "fail"] | int = "continue"
    schema: bool = False
    """The answer is to be given by `final_output`."""
    context: int | None = None
    check_passes: bool | None = None
    """Of a check after the work; None: there is no check."""
    retry: RetryRule | None = None
    """One whose checks fail as `check_passes` says."""
    patch_seconds: float = 0.0


@frozen(kw_only=True)
class World:
    """All that happens in one run."""

    parts: tuple[Part, ...]
    jobs: int = 2
    max_cost: Decimal | None = None
    max_failures: int | None = None
    stop: tuple[float, Literal["interrupted", "max_time"]] | None = None
    """Seconds until all of it is stopped, and why."""


TARGETS = st.sampled_from(["ok/a", "ok/b", "ok/c", "no/a"])
BEHAVIOURS: st.SearchStrategy[Behaviour] = st.sampled_from(
    ["ok", "ok", "ok", "error", "slow", "stuck", "huge", "refuses"]
)
VALID: st.SearchStrategy[JsonObject | str] = st.fixed_dictionaries(
    {"target": TARGETS, "behaviour": BEHAVIOURS}
)
INVALID: st.SearchStrategy[JsonObject | str] = st.sampled_from(
    ["", "{", "[1]", '{"target": 3}', '{"target": "ok/a", "behaviour": "ok"', '{"answer": 1}']
)
NAMES = st.sampled_from(["look", "change", "shell", "LOOK"])
ODD_NAMES = st.sampled_from(["look", "nosuch", "hidden", "final_output"])
SAYINGS = st.builds(Says, st.sampled_from(["", "I look.", "Schön € 🌤 ", "long " * 400]))
PIECES: st.SearchStrategy[Piece] = st.one_of(
    SAYINGS,
    st.builds(Thinks, st.sampled_from(["hm", "why? " * 50])),
    st.builds(Calls, NAMES, VALID),
    st.builds(Calls, ODD_NAMES, VALID),
    st.builds(Calls, ODD_NAMES, INVALID),
    st.builds(Calls, NAMES, VALID, whole=st.just(False)),
)
PASSING: st.SearchStrategy[ProviderError] = st.one_of(
    st.builds(
        RateLimited, st.just("slow down"), retry_after=st.sampled_from([None, 0.0, 5.0, 900.0])
    ),
    st.builds(Unavailable, st.just("busy"), retry_after=st.sampled_from([None, 1.0])),
    st.builds(NetworkFailure, st.just("cut"), sent=st.booleans()),
    st.builds(ProviderTimeout, st.just("silent"), sent=st.booleans()),
    st.builds(ContextOverflow, st.just("prompt is too long")),
)
FATAL: st.SearchStrategy[ProviderError] = st.one_of(
    st.builds(AuthFailed, st.just("who?")),
    st.builds(ModelRejected, st.just("no")),
    st.builds(ProtocolBroken, st.just("html")),
    st.builds(QuotaExhausted, st.just("no credit")),
)


def often(usual: st.SearchStrategy[T], odd: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """The usual thing five times of six, or worlds would all end at their first mishap."""
    return st.integers(0, 5).flatmap(lambda n: odd if n == 5 else usual)


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    """Mostly nothing."""
    return often(st.none(), strategy)


WORK = st.builds(
    Act,
    pieces=st.lists(st.one_of(st.builds(Calls, NAMES, VALID), SAYINGS), min_size=1, max_size=3).map(
        lambda pieces: (*pieces, Calls("look", {"target": "ok/z", "behaviour": "ok"}))
    ),
    pause=maybe(st.sampled_from([0.01, 3.0])).map(lambda pause: pause or 0.0),
    at_once=st.booleans(),
)
MISHAPS = st.builds(
    Act,
    pieces=st.lists(PIECES, max_size=4).map(tuple),
    reason=st.sampled_from([None, None, None, "stop", "length", "content_filter", "unknown"]),
    fault=st.one_of(st.none(), PASSING, maybe(FATAL)),
    fault_after=st.integers(0, 8),
    ends=st.sampled_from([True, True, False]),
    counted=st.booleans(),
    pause=st.sampled_from([0.0, 0.01, 3.0, 200.0]),
    at_once=st.booleans(),
)
ACTS = st.one_of(WORK, WORK, MISHAPS)
GROUND = tuple(
    Rule(permission, "ok/*", "allow", "recipe:r.yaml:1") for permission in ("read", "edit", "bash")
)
RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["read", "edit", "bash", "*", "doom_loop"]),
        st.sampled_from(["*", "ok/*", "no/*", "ok/a", "look"]),
        st.sampled_from(["allow", "allow", "deny", "ask"]),
        st.just("recipe:r.yaml:2"),
    ),
    max_size=2,
).map(lambda rules: (*GROUND, *rules))
LIMITS = st.builds(
    Limits,
    steps=often(st.just(30), st.sampled_from([1, 2, 3, 6])),
    tool_calls=maybe(st.integers(0, 5)),
    tokens=maybe(st.sampled_from([1500, 6000, 20_000])),
    cost_usd=maybe(st.sampled_from([Decimal("0.001"), Decimal("0.01"), Decimal("0.1")])),
    seconds=maybe(st.sampled_from([1.0, 30.0, 400.0])),
    working_seconds=maybe(st.sampled_from([1.0, 30.0])),
    output_tokens=maybe(st.sampled_from([20, 500])),
)
RETRIES = st.builds(
    RetryRule,
    max_retries=st.integers(1, 2),
    checks=st.just(("test -e done",)),
    on_failure=st.sampled_from(["", "true"]),
    feedback=st.booleans(),
    reset=st.booleans(),
)
PARTS = st.builds(
    Part,
    acts=st.lists(ACTS, min_size=1, max_size=10).map(tuple),
    small_acts=maybe(st.lists(MISHAPS, max_size=2).map(tuple)).map(lambda acts: acts or ()),
    rules=RULES,
    limits=LIMITS,
    on_denial=often(st.just("continue"), st.sampled_from(["fail", 2])),
    schema=maybe(st.just(True)).map(bool),
    context=st.sampled_from([None, 1000, 4000, 16_000]),
    check_passes=st.sampled_from([None, None, True, False]),
    retry=st.one_of(st.none(), RETRIES),
    patch_seconds=maybe(st.sampled_from([2.0, 500.0])).map(lambda seconds: seconds or 0.0),
)
WORLDS = st.builds(
    World,
    parts=st.lists(PARTS, min_size=1, max_size=3).map(tuple),
    jobs=st.integers(1, 3),
    max_cost=st.sampled_from([None, None, Decimal("0.02"), Decimal("0.2")]),
    max_failures=maybe(st.integers(1, 2)),
    stop=maybe(
        st.tuples(
            st.sampled_from([0.0, 0.005, 4.0, 250.0]), st.sampled_from(["interrupted", "max_time"])
        )
    ),
)
