"""Before a request goes out: the engine's seam to whoever shares a provider out among sessions."""

from typing import Protocol

import trio
from attrs import frozen

from harness_batch.errors import ProviderError
from harness_batch.messages import ModelRef


@frozen(kw_only=True)
class Knock:
    """Who wants to send a request, and to whom."""

    ref: ModelRef
    prefix: str
    """Hash of what all requests of the session begin with."""
    prefix_bytes: int
    first: bool
    """The session has sent none yet."""
    again: bool
    """The one before was refused, and its own wait is over."""
    deadline: float
    """The session's time limit, on trio's clock."""


class Slot(Protocol):
    """Leave to send one request; to be given back with `release` whatever becomes of it."""

    def begun(self) -> None:
        """The reply has begun. Any number of times."""
        ...

    def replied(self, left: float | None) -> None:
        """The reply is read; `left` is the share of the tightest quota that the provider told."""
        ...

    def failed(self, error: ProviderError) -> None:
        """There was no reply, or no whole one."""
        ...

    def release(self) -> None:
        """It is over. A second time changes nothing."""
        ...


class Admission(Protocol):
    """Shares the providers out among all sessions of a run."""

    async def admit(self, knock: Knock) -> Slot:
        """Wait for the turn; may be cancelled at any moment.

        Raises: ProviderError when waiting is in vain.
        """
        ...

    def given_up(self, ref: ModelRef, error: ProviderError) -> None:
        """A step ends with this error: trying again, with another key too, was in vain."""
        ...


class FreeSlot:
    """A slot that nobody counts."""

    def begun(self) -> None:
        """Nothing."""

    def replied(self, left: float | None) -> None:
        """Nothing."""

    def failed(self, error: ProviderError) -> None:
        """Nothing."""

    def release(self) -> None:
        """Nothing."""


class Unlimited:
    """Admits everybody at once: for models that no provider is behind."""

    async def admit(self, knock: Knock) -> Slot:
        """At once."""
        del knock
        await trio.lowlevel.checkpoint()
        return FreeSlot()

    def given_up(self, ref: ModelRef, error: ProviderError) -> None:
        """Nothing."""
