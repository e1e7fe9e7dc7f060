"""Money that is reserved before it is spent, so that no race of sessions can overspend.

A session's budget hangs under the run's: a reservation must fit both. Amounts are US dollars.
"""

from collections.abc import Iterator
from decimal import Decimal

import trio
from attrs import define, field

LOW = Decimal("0.8")
"""From this share of a budget on nothing new is begun."""


@define
class Budget:
    """What may be spent, what was spent, and what calls under way could still cost at most."""

    limit: Decimal | None
    parent: "Budget | None" = None
    spent: Decimal = field(default=Decimal(0))
    reserved: Decimal = field(default=Decimal(0))
    exhausted: bool = False
    """A call was refused because it did not fit here."""
    _settled: trio.Event = field(factory=trio.Event)

    def left(self) -> Decimal | None:
        """What a new call may cost at most, here and above; None is no limit."""
        lefts = (level.own_left() for level in self.levels())
        return min((left for left in lefts if left is not None), default=None)

    def running_low(self) -> bool:
        """Whether `LOW` of the limit is spent, here alone."""
        return self.limit is not None and self.spent >= LOW * self.limit

    def reserve(self, amount: Decimal) -> bool:
        """Hold `amount` here and above; False (and nothing held) when it does not fit."""
        left = self.left()
        if left is not None and amount > left:
            return False
        for level in self.levels():
            level.reserved += amount
        return True

    def refuse(self) -> None:
        """Note that a call did not fit, on the level that had the least left."""
        self.tightest().exhausted = True

    def tightest(self) -> "Budget":
        """The level that has the least left."""
        limited = [level for level in self.levels() if level.limit is not None]
        return min(limited, key=lambda level: level.own_left() or Decimal(0), default=self)

    def levels(self) -> "Iterator[Budget]":
        """This one and those above it, upwards."""
        yield self
        if self.parent is not None:
            yield from self.parent.levels()

    def held_up(self, amount: Decimal) -> "Budget | None":
        """The level where `amount` does not fit while calls under way still hold some of it."""
        for level in self.levels():
            left = level.own_left()
            if left is not None and amount > left and level.reserved > 0:
                return level
        return None

    async def settled(self) -> None:
        """Wait until a call under way has ended and given back what it held of this level."""
        await self._settled.wait()

    def settle(self, reserved: Decimal, actual: Decimal) -> None:
        """Give a reservation back and count what the call really cost."""
        self.reserved -= reserved
        self.spent += actual
        self._settled.set()
        self._settled = trio.Event()
        if self.parent:
            self.parent.settle(reserved, actual)

    def own_left(self) -> Decimal | None:
        """What is left on this level alone."""
        return None if self.limit is None else self.limit - self.spent - self.reserved
