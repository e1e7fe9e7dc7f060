"""Every request to a provider becomes a row: opened before it is sent, closed whatever its fate."""

from datetime import UTC, datetime
from decimal import Decimal

import trio
from attrs import define, evolve, field, frozen

from harness_batch.config.record import ModelInfo, Prices
from harness_batch.engine.log import AttemptLog, timestamp
from harness_batch.engine.spend import Allowance, Spend
from harness_batch.engine.stream_parts import StreamParts
from harness_batch.errors import ProviderError
from harness_batch.events import ModelCallClosed, ModelCallOpened, PricesUsed
from harness_batch.ids import new_id
from harness_batch.messages import ModelRef, TokenUsage
from harness_batch.models.price_rows import price_rows
from harness_batch.models.pricing import cost
from harness_batch.records import ModelCall, Purpose


@frozen
class OpenCall:
    """A request under way, with what is reserved for it. `began` is on trio's clock."""

    row: ModelCall
    allowance: Allowance
    prices: Prices | None
    """Those of the moment when it was sent."""
    size: int
    """Of the request, in bytes."""
    began: float


@define
class ModelCalls:
    """Keeps the rows of one attempt and settles their reservations."""

    log: AttemptLog
    spend: Spend
    ref: ModelRef
    info: ModelInfo
    """With the prices of all times."""
    purpose: Purpose = "step"
    _told: set[str | None] = field(factory=set)
    """Versions of prices that the journal has already."""

    def info_now(self) -> ModelInfo:
        """The model with the prices of this moment."""
        return self.info.at(datetime.now(UTC))

    def open(self, message_id: str, allowance: Allowance, size: int, tries: int) -> OpenCall:
        """Write the intent down; only then may the request be sent."""
        row = ModelCall(
            model_call_id=new_id("mcl"),
            session_id=self.log.session_id,
            attempt_id=self.log.attempt_id,
            message_id=message_id,
            purpose=self.purpose,
            provider=self.ref.provider,
            request_model=self.ref.model,
            step=self.spend.steps,
            try_=tries,
            started_at=timestamp(),
        )
        self.log.emit(ModelCallOpened(row, allowance.tokens, str(allowance.usd)))
        return OpenCall(row, allowance, self.info_now().prices, size, trio.current_time())

    def close(
        self, call: OpenCall, parts: StreamParts, error: ProviderError | None
    ) -> Decimal | None:
        """Write the end down. Returns the cost in US dollars, None when it is unpriced."""
        usage = parts.finish.usage if parts.finish else None
        row = _with_tokens(_ended(call, parts, trio.current_time()), usage or _counted(parts))
        if usage is not None:
            row = self._costed(row, usage, call.prices)
        settled = self._settle(call, parts, usage, row.cost_usd, error)
        if error is not None:
            status = error.status or row.http_status
            row = evolve(row, error_kind=error.kind, error=str(error), http_status=status)
        self.log.emit(ModelCallClosed(row, str(settled)))
        return row.cost_usd

    def _costed(self, row: ModelCall, usage: TokenUsage, prices: Prices | None) -> ModelCall:
        """Our own price first; the provider's word where we have none; else it is unpriced."""
        usd = cost(usage, prices)
        if usd is not None and prices is not None:
            self._tell(prices)
            return evolve(
                row, cost_usd=usd, cost_source=prices.source, price_version=prices.version
            )
        if row.provider_cost_usd is not None:
            return evolve(row, cost_usd=row.provider_cost_usd, cost_source="provider")
        return row

    def _tell(self, prices: Prices) -> None:
        """Into the journal, once for each version, what the cost was computed with."""
        if prices.version is None or prices.version in self._told:
            return
        self._told.add(prices.version)
        self.log.emit(PricesUsed(list(price_rows(self.ref, prices))))

    def abort(self, call: OpenCall, parts: StreamParts) -> None:
        """The session was stopped under the call: it counts at its ceiling."""
        settled = self.spend.settle(call.allowance, None, None)
        row = _with_tokens(_ended(call, parts, trio.current_time()), _counted(parts))
        row = evolve(row, error_kind="cancelled", error="the session was stopped under the call")
        self.log.emit(ModelCallClosed(row, str(settled)))

    def _settle(
        self,
        call: OpenCall,
        parts: StreamParts,
        usage: TokenUsage | None,
        usd: Decimal | None,
        error: ProviderError | None,
    ) -> Decimal:
        if usage is not None and self.purpose == "step":
            self.spend.learn(call.size, usage)
        if parts.started or parts.consumed or parts.finish:
            settled = self.spend.settle(call.allowance, usage, usd)
            if usage is not None:
                tokens = usage.input + usage.output
                for text in self.spend.overruns(call.allowance, tokens, settled):
                    self.log.notice(text)
            return settled
        if error is not None and error.sent:
            return self.spend.forfeit(call.allowance)
        return self.spend.refund(call.allowance)


def _counted(parts: StreamParts) -> TokenUsage | None:
    """What the provider had counted when a reply broke off: tokens without a known cost."""
    return parts.started.usage if parts.started and not parts.finish else None


def _ended(call: OpenCall, parts: StreamParts, now: float) -> ModelCall:
    started, finish = parts.started, parts.finish
    return evolve(
        call.row,
        duration_s=now - call.began,
        ttft_s=None if parts.first_at is None else parts.first_at - call.began,
        http_status=started.http_status if started else None,
        response_id=(finish.response_id if finish else None)
        or (started.response_id if started else None),
        response_model=(finish.response_model if finish else None)
        or (started.response_model if started else None),
        finish_reason=finish.reason if finish else None,
        usage_raw=finish.usage_raw if finish else None,
        provider_cost_usd=finish.provider_cost_usd if finish else None,
    )


def _with_tokens(row: ModelCall, usage: TokenUsage | None) -> ModelCall:
    if usage is None:
        return row
    return evolve(
        row,
        input_tokens=usage.input,
        cache_read_tokens=usage.cache_read,
        cache_write_5m_tokens=usage.cache_write_5m,
        cache_write_1h_tokens=usage.cache_write_1h,
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
    )
