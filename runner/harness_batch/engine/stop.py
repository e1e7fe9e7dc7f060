"""Ending a session from outside: signals, run-level stops, its parent and its own clocks."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio
from attrs import define, field

from harness_batch.engine.endings import Ending, Interrupted, Stopped
from harness_batch.limits import Limits

WRITING_S = 100.0
"""How long taking the patch may last."""
LAST_WRITING_S = 5.0
"""The same after a signal: all of it must be over within 10 s."""


@define
class StopSignal:
    """Cut short what a session is doing, in whichever attempt. The first reason counts."""

    reason: str | None = None
    """`interrupted`, `max_time`, `max_failures`, `parent_stopped`; None while nobody asked."""
    deadline: float = math.inf
    """Of the session's limit `seconds`, on trio's clock."""
    working_deadline: float = math.inf
    """Of `working_seconds`; moves on while a provider keeps us waiting."""
    limits: Limits = field(factory=Limits)
    above: "StopSignal | None" = None
    """Of the session that waits for this one: our waiting for a provider is its waiting too."""
    _waits: int = 0
    """How many, of this session and those below it, wait for a provider just now."""
    _waits_since: float = 0.0
    _scope: trio.CancelScope | None = None
    _writing: trio.CancelScope | None = None

    def begin(self, limits: Limits) -> None:
        """Start the clocks of the session's limits."""
        now = trio.current_time()
        self.limits = limits
        if limits.seconds is not None:
            self.deadline = now + limits.seconds
        if limits.working_seconds is not None:
            self.working_deadline = now + limits.working_seconds

    def ask(self, reason: str) -> None:
        """Stop now. Later calls change nothing."""
        if self.reason is None:
            self.reason = reason
            if self._scope is not None:
                self._scope.cancel()
            if self._writing is not None:
                self._writing.deadline = min(self._writing.deadline, self._written_by())

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Waiting for a provider, here and above: `working_seconds` stand still, no other limit."""
        line = list(self._line())
        for signal in line:
            signal.begin_wait()
        try:
            yield
        finally:
            for signal in line:
                signal.end_wait()

    def _line(self) -> "Iterator[StopSignal]":
        signal: StopSignal | None = self
        while signal is not None:
            yield signal
            signal = signal.above

    def begin_wait(self) -> None:
        """One more waits; of `waiting`."""
        if not self._waits:
            self._waits_since = trio.current_time()
        self._waits += 1
        self._set_deadline()

    def end_wait(self) -> None:
        """One fewer waits; of `waiting`."""
        self._waits -= 1
        if not self._waits:
            self.working_deadline += trio.current_time() - self._waits_since
        self._set_deadline()

    def _set_deadline(self) -> None:
        if self._scope is not None:
            self._scope.deadline = self._ends_at()

    def _ends_at(self) -> float:
        return self.deadline if self._waits else min(self.deadline, self.working_deadline)

    def scope(self) -> trio.CancelScope:
        """A fresh scope for the next stretch of work; cancelled at once when we were stopped."""
        self._scope = trio.CancelScope(deadline=self._ends_at())
        if self.reason is not None:
            self._scope.cancel()
        return self._scope

    def writing(self) -> trio.CancelScope:
        """A scope for writing down what was done: no stop cuts it, a signal only shortens it."""
        self._writing = trio.CancelScope(shield=True, deadline=self._written_by())
        return self._writing

    def _written_by(self) -> float:
        seconds = LAST_WRITING_S if self.reason == "interrupted" else WRITING_S
        return trio.current_time() + seconds

    def over(self) -> Ending | None:
        """Why nothing more can be begun; None while something can."""
        late = trio.current_time() >= self._ends_at()
        return self.ending() if late or self.reason is not None else None

    def ending(self) -> Ending:
        """Why the scope was cut short."""
        if self.reason is not None:
            return Interrupted(self.reason, _WORDS.get(self.reason, self.reason))
        if trio.current_time() >= self.deadline:
            return Stopped("max_time", f"the limit seconds ({self.limits.seconds:g}) is used up")
        seconds = self.limits.working_seconds
        return Stopped("max_working_seconds", f"the limit working_seconds ({seconds:g}) is used up")


_WORDS = {
    "interrupted": "interrupted by a signal",
    "max_time": "the run's --max-time is used up",
    "max_failures": "the run's --max-failures is reached",
    "parent_stopped": "the session that started it was stopped",
}
