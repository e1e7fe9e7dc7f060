"""Shares the providers out among the sessions of one run; every change of a limit is an event.

One door an entry of `provider`: a provider's account is what the configuration gives a name to.
"""

from collections.abc import Iterable, Mapping
from functools import partial

from attrs import define, field, frozen

from harness_batch.config.record import ProviderSettings
from harness_batch.engine.admission import Knock, Slot, Unlimited
from harness_batch.engine.log import Log, timestamp
from harness_batch.errors import ProviderError
from harness_batch.events import Notice, ProviderLimitChanged
from harness_batch.messages import ModelRef
from harness_batch.models.limiter import Change, Pass, ProviderLimiter
from harness_batch.models.throttle import FIRST_WIDTH, Throttle
from harness_batch.models.warm_start import LONG_BYTES, Lead, WarmStart, caches_prompts
from harness_batch.plan.choice import FREE
from harness_batch.records import ProviderLimit


@frozen
class Entry:
    """A slot: a place at the provider, and a part in keeping a shared prefix warm."""

    leave: Pass
    lead: Lead | None

    def begun(self) -> None:
        """See `Slot`."""
        if self.lead is not None:
            self.lead.begun()

    def replied(self, left: float | None) -> None:
        """See `Slot`."""
        self.leave.replied(left)

    def failed(self, error: ProviderError) -> None:
        """See `Slot`."""
        self.leave.failed(error)

    def release(self) -> None:
        """See `Slot`."""
        self.leave.release()
        if self.lead is not None:
            self.lead.over()


@define(kw_only=True)
class Admissions:
    """`Admission` of one run."""

    providers: Mapping[str, ProviderSettings]
    log: Log
    jobs: int
    """Sessions at a time: so many requests go out before a provider has said anything."""
    _doors: dict[str, ProviderLimiter] = field(factory=dict)
    _warm_start: WarmStart = field(factory=WarmStart)
    _unlimited: Unlimited = field(factory=Unlimited)

    async def admit(self, knock: Knock) -> Slot:
        """See `Admission`."""
        if self._is_free(knock.ref):
            return await self._unlimited.admit(knock)
        lead = await self._lead(knock)
        try:
            leave = await self._door(knock.ref).enter(again=knock.again, deadline=knock.deadline)
        except BaseException:
            if lead is not None:
                lead.over()
            raise
        return Entry(leave, lead)

    def given_up(self, ref: ModelRef, error: ProviderError) -> None:
        """See `Admission`."""
        if not self._is_free(ref):
            self._door(ref).note_end(error)

    def closed(self, refs: Iterable[ModelRef]) -> bool:
        """None of these models can be asked any more."""
        return all(not self._is_free(ref) and self._door(ref).throttle.is_open for ref in refs)

    async def _lead(self, knock: Knock) -> Lead | None:
        ref = knock.ref
        settings = self.providers[ref.provider]
        if knock.prefix_bytes < LONG_BYTES or not caches_prompts(settings, ref.model):
            return None
        return await self._warm_start.turn(f"{ref} {knock.prefix}", first=knock.first)

    def _is_free(self, ref: ModelRef) -> bool:
        return self.providers[ref.provider].type in FREE

    def _door(self, ref: ModelRef) -> ProviderLimiter:
        name = ref.provider
        if name not in self._doors:
            start = Throttle(limit=float(max(FIRST_WIDTH, self.jobs)))
            self._doors[name] = ProviderLimiter(name, partial(_tell, self.log), start)
        return self._doors[name]


def _tell(log: Log, change: Change) -> None:
    row = ProviderLimit(
        provider=change.provider,
        requests=change.width,
        before=change.before,
        cause=change.cause,
        cool_down_s=None if change.cool_down_s is None else round(change.cool_down_s, 3),
        share_left=change.left,
        changed_at=timestamp(),
    )
    log.append(ProviderLimitChanged(row), None)
    if not change.width:
        why = "the key is refused" if change.cause == "auth" else "there is no credit left"
        told = f"provider {change.provider} is asked no more: {why}, twice in a row"
        log.append(Notice("error", told), None)
