"""Events to whoever watches a run: progress, followers. Watching never slows the run.

A subscriber that lags by `CAPACITY` events loses the newest ones and is told how many; the journal
is the place for readers who must miss nothing.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from harness_batch.events import Event, PartDelta

CAPACITY: Final = 1024
"""Events that wait for one subscriber."""


class Subscription:
    """What one subscriber receives; iterate over it. Ends when the bus is closed."""

    def __init__(self, capacity: int) -> None:
        self._send, self._receive = trio.open_memory_channel[Event](capacity)
        self.dropped = 0
        """Events this subscriber was too slow for."""

    def __aiter__(self) -> AsyncIterator[Event]:
        return aiter(self._receive)

    def offer(self, event: Event) -> None:
        """One more event, if there is room."""
        try:
            self._send.send_nowait(event)
        except trio.WouldBlock:
            self.dropped += 1

    def close(self) -> None:
        """No more events come; those that wait can still be read."""
        self._send.close()


class EventBus:
    """Fans events out to any number of subscribers."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._subscriptions: list[Subscription] = []
        self._closed = False

    @contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Events from now on, until the block is left."""
        subscription = Subscription(self._capacity)
        if self._closed:
            subscription.close()
        else:
            self._subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions = [s for s in self._subscriptions if s is not subscription]
            subscription.close()

    def publish(self, event: Event) -> None:
        """To every subscriber; never waits."""
        for subscription in self._subscriptions:
            subscription.offer(event)

    def follow(self, event: Event) -> None:
        """A journaled event: published, but for deltas, which were published as they came."""
        if not isinstance(event.payload, PartDelta):
            self.publish(event)

    def close(self) -> None:
        """Subscribers read what waits for them, then their iteration ends."""
        self._closed = True
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
