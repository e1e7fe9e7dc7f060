"""Money that is reserved before it is spent, so that no race of sessions can overspend.

A session's budget hangs under the run's: a reservation must fit both. Amounts are US dollars.
"""

from decimal import Decimal

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

    def left(self) -> Decimal | None:
        """What a new call may cost at most, here and above; None is no limit."""
        lefts = (self._own_left(), self.parent.left() if self.parent else None)
        return min((left for left in lefts if left is not None), default=None)

    def running_low(self) -> bool:
        """Whether `LOW` of the limit is spent, here alone."""
        return self.limit is not None and self.spent >= LOW * self.limit

    def reserve(self, amount: Decimal) -> bool:
        """Hold `amount` here and above; False (and nothing held) when it does not fit."""
        left = self.left()
        if left is not None and amount > left:
            return False
        self._hold(amount)
        return True

    def refuse(self) -> None:
        """Note that a call did not fit, on the level that had the least left."""
        level, tightest, least = self.parent, self, self._own_left()
        while level is not None:
            left = level._own_left()  # noqa: SLF001  # the same record, one level up
            if left is not None and (least is None or left < least):
                tightest, least = level, left
            level = level.parent
        tightest.exhausted = True

    def settle(self, reserved: Decimal, actual: Decimal) -> None:
        """Give a reservation back and count what the call really cost."""
        self.reserved -= reserved
        self.spent += actual
        if self.parent:
            self.parent.settle(reserved, actual)

    def _own_left(self) -> Decimal | None:
        return None if self.limit is None else self.limit - self.spent - self.reserved

    def _hold(self, amount: Decimal) -> None:
        self.reserved += amount
        if self.parent:
            self.parent._hold(amount)  # noqa: SLF001  # the same record, one level up
