"""The door to one provider account: who may send a request now, and who waits. For trio.

What the width is and how long a refusal cools down is throttle.py's; here is only the waiting.
Whoever waits can be cancelled at any moment, and is told at once when waiting is in vain: the
circuit has opened, or the cool-down lasts longer than the waiter has time.
"""

import math
from collections.abc import Callable

import trio
from attrs import define, field, frozen

from harness_batch.errors import (
    AuthFailed,
    Overloaded,
    ProviderClosed,
    ProviderError,
    QuotaExhausted,
    RateLimited,
)
from harness_batch.models.throttle import Cause, Throttle, denied, refused, replied


@frozen(kw_only=True)
class Change:
    """The door's width has changed, or a cool-down began."""

    provider: str
    width: int
    before: int
    cause: Cause
    cool_down_s: float | None = None
    left: float | None = None
    """The share of the tightest quota that is left, when the provider told it."""


@define
class Pass:
    """Leave to send one request. Given back with `release`, whatever became of it."""

    _limiter: "ProviderLimiter"
    _sent_at: float
    _is_held: bool = True

    def replied(self, left: float | None) -> None:
        """The provider has answered; `left` is the least share of a quota that it told."""
        self._limiter.note_reply(left)

    def failed(self, error: ProviderError) -> None:
        """The provider has refused."""
        self._limiter.note_failure(error, self._sent_at)

    def release(self) -> None:
        """The request is over. A second time changes nothing."""
        if self._is_held:
            self._is_held = False
            self._limiter.leave()


@define
class ProviderLimiter:
    """One account's door, shared by everybody who sends requests there."""

    provider: str
    tell: Callable[[Change], None]
    """Hears of every change. Raises what it likes."""
    throttle: Throttle = field(factory=Throttle)
    under_way: int = 0
    _queue: trio.Lock = field(factory=trio.Lock)
    """Whoever has it is next; trio's locks are fair."""
    _changed: trio.Event = field(factory=trio.Event)

    async def enter(self, *, again: bool, deadline: float) -> Pass:
        """Wait for the turn. `again`: after an own refusal, which has its own wait behind it, so
        the cool-down of the others does not hold it.

        Raises: ProviderClosed when the circuit is open; RateLimited when the cool-down would not
        end before the `deadline`.
        """
        if not self._queue.locked() and self._is_free(again=again):
            return self._taken()
        self._demand(again=again, deadline=deadline)
        if again:
            await self._until_free(again=True, deadline=deadline)
            return self._taken()
        async with self._queue:
            await self._until_free(again=False, deadline=deadline)
            return self._taken()

    def note_reply(self, left: float | None) -> None:
        """See `Pass.replied`."""
        new = replied(self.throttle, self.under_way, left)
        self._become(new, "increase" if new.kept == self.throttle.kept else "headroom", left)

    def note_failure(self, error: ProviderError, sent_at: float) -> None:
        """See `Pass.failed`."""
        match error:
            case RateLimited():
                self._cool_down(error, sent_at, "rate_limit")
            case Overloaded():
                self._cool_down(error, sent_at, "overloaded")
            case _:
                pass

    def note_end(self, error: ProviderError) -> None:
        """Somebody has given up for good, be it that a request could not even be sent."""
        match error:
            case AuthFailed():
                self._become(denied(self.throttle), "auth")
            case QuotaExhausted():
                self._become(denied(self.throttle), "quota")
            case _:
                pass

    def leave(self) -> None:
        """See `Pass.release`."""
        self.under_way -= 1
        self._wake()

    def _taken(self) -> Pass:
        self.under_way += 1
        return Pass(self, trio.current_time())

    def _is_free(self, *, again: bool) -> bool:
        cool = again or self.throttle.cool_until <= trio.current_time()
        return cool and self.under_way < self.throttle.width

    async def _until_free(self, *, again: bool, deadline: float) -> None:
        while not self._is_free(again=again):
            self._demand(again=again, deadline=deadline)
            cool_until = self.throttle.cool_until
            cooling = not again and cool_until > trio.current_time()
            with trio.move_on_at(cool_until if cooling else math.inf):
                await self._changed.wait()

    def _demand(self, *, again: bool, deadline: float) -> None:
        """Raises when waiting is in vain."""
        if self.throttle.is_open:
            text = "no more requests to it: its last answers were about a wrong key or no credit"
            raise ProviderClosed(f"{self.provider}: {text}")
        wait = self.throttle.cool_until - trio.current_time()
        if not again and wait > 0 and self.throttle.cool_until >= deadline:
            text = f"limits the rate; waiting {wait:.0f} s would pass the time limit"
            raise RateLimited(f"{self.provider}: {text}")

    def _cool_down(self, error: ProviderError, sent_at: float, cause: Cause) -> None:
        now = trio.current_time()
        new = refused(
            self.throttle, self.under_way, sent_at=sent_at, now=now, wait=error.retry_after
        )
        self._become(new, cause)

    def _become(self, new: Throttle, cause: Cause, left: float | None = None) -> None:
        old, self.throttle = self.throttle, new
        cooler = new.cool_until > old.cool_until
        if new.width == old.width and not cooler:
            return
        self._wake()
        self.tell(
            Change(
                provider=self.provider,
                width=new.width,
                before=old.width,
                cause=cause,
                cool_down_s=new.cool_until - trio.current_time() if cooler else None,
                left=left,
            )
        )

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
