"""What a session has used, and whether one more model call fits. Pure; no call is made here.

A limit is checked before it is overrun: a call must fit with its estimated input and the most
output it may give, and that output is lowered as far as it must be.

What a child session uses counts for its parents too: tokens, money and tool calls, against their
limits and in their totals. Steps do not: they bound one conversation. Children and parent may call
at the same time, so tokens are held while a call is under way, as money is.
"""

from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
from math import ceil

from attrs import define, field, frozen

from harness_batch.config.record import ModelInfo, Prices
from harness_batch.engine.budget import Budget
from harness_batch.engine.endings import Stopped
from harness_batch.limits import DEFAULTS, Limits
from harness_batch.messages import TokenUsage

FIRST_TOKENS_PER_CHARACTER = 0.5
"""Before the provider's first report: dearer than any real text."""
SAFETY = 1.1
"""On the ratio of the last report."""
LEAST_OUTPUT_TOKENS = 16
"""A reply that may not even have these is not asked for."""
MILLION = Decimal(1_000_000)


@frozen
class Allowance:
    """One call that fits."""

    max_output_tokens: int
    tokens: int
    """Input estimate and output ceiling together."""
    usd: Decimal
    """Reserved with the budget; 0 when nothing is priced or limited."""


@define
class Spend:
    """Counters of one session, over all its attempts, what its children use included."""

    limits: Limits
    budget: Budget
    parent: "Spend | None" = None
    """Of the session that started this one."""
    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0
    held_tokens: int = 0
    """The most that calls under way may still use."""
    waited_s: float = 0.0
    """Time spent waiting for a provider to admit us again."""
    usd: Decimal = field(default=Decimal(0))
    unpriced_calls: int = 0
    tokens_per_character: float = field(default=FIRST_TOKENS_PER_CHARACTER)

    def allow(
        self, characters: int, info: ModelInfo, most: int | None = None
    ) -> Allowance | Stopped:
        """Reserve a call with a request of that many characters, or say which limit forbids it.

        `most` bounds its output tokens further.
        """
        estimate = ceil(characters * self.tokens_per_character)
        output = self._output_ceiling(estimate, info)
        if most is not None:
            output = min(output, most)
        for spend in self._line():
            if spend.limits.tokens is None:
                continue
            room = spend.limits.tokens - spend.tokens - spend.held_tokens - estimate
            if room < LEAST_OUTPUT_TOKENS:
                return Stopped("max_tokens", _over("tokens", spend.limits.tokens, spend.tokens))
            output = min(output, room)
        allowance = self._reserve(estimate, output, info.prices)
        if isinstance(allowance, Allowance):
            self._hold(allowance.tokens)
        return allowance

    def take_tool_call(self) -> int | None:
        """Count one more tool call; the limit that it would pass, and then it is not counted."""
        for spend in self._line():
            limit = spend.limits.tool_calls
            if limit is not None and spend.tool_calls >= limit:
                return limit
        for spend in self._line():
            spend.tool_calls += 1
        return None

    def settle(
        self, allowance: Allowance, usage: TokenUsage | None, cost: Decimal | None
    ) -> Decimal:
        """Count a call that ended; without the provider's report it counts at its ceiling.

        Returns what it counts against budgets, in US dollars.
        """
        self._hold(-allowance.tokens)
        for spend in self._line():
            spend.tokens += allowance.tokens if usage is None else usage.input + usage.output
            if cost is None:
                spend.unpriced_calls += 1
            else:
                spend.usd += cost
        settled = allowance.usd if usage is None else cost or Decimal(0)
        self.budget.settle(allowance.usd, settled)
        return settled

    def cost(self) -> Decimal | None:
        """US dollars so far; None when a call that may have cost something is unpriced."""
        return None if self.unpriced_calls else self.usd

    def refund(self, allowance: Allowance) -> Decimal:
        """A call that the provider refused before it did anything costs nothing."""
        self._hold(-allowance.tokens)
        self.budget.settle(allowance.usd, Decimal(0))
        return Decimal(0)

    def learn(self, characters: int, usage: TokenUsage) -> None:
        """Take the ratio of tokens to characters from a report."""
        if characters and usage.input:
            self.tokens_per_character = usage.input / characters * SAFETY

    def _line(self) -> "Iterator[Spend]":
        """This session's, its parent's, and so on up."""
        spend: Spend | None = self
        while spend is not None:
            yield spend
            spend = spend.parent

    def _hold(self, tokens: int) -> None:
        for spend in self._line():
            spend.held_tokens += tokens

    def _output_ceiling(self, estimate: int, info: ModelInfo) -> int:
        ceilings = [self.limits.output_tokens or DEFAULTS.output_tokens or 0]
        if info.output:
            ceilings.append(info.output)
        if info.context and info.context > estimate:
            ceilings.append(info.context - estimate)
        return max(min(ceilings), LEAST_OUTPUT_TOKENS)

    def _reserve(self, estimate: int, output: int, prices: Prices | None) -> Allowance | Stopped:
        left = self.budget.left()
        if prices is None or prices.input is None or prices.output is None:
            return Allowance(output, estimate + output, Decimal(0))
        dearest = max(p for p in (prices.input, prices.cache_write) if p is not None)
        fixed = estimate * dearest / MILLION
        if left is not None and prices.output > 0:
            output = min(output, max(0, int((left - fixed) * MILLION / prices.output)))
        usd = (fixed + output * prices.output / MILLION).quantize(
            Decimal("1e-9"), rounding=ROUND_CEILING
        )
        if output < LEAST_OUTPUT_TOKENS or not self.budget.reserve(usd):
            self.budget.refuse()
            limit = self.limits.cost_usd if self.limits.cost_usd is not None else "the run's"
            return Stopped("max_cost", _over("cost_usd", limit, self.budget.spent))
        return Allowance(output, estimate + output, usd)


def _over(key: str, limit: object, used: object) -> str:
    return f"the next model call would pass the limit {key} ({limit}; used {used})"
