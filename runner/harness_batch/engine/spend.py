"""What a session has used, and whether one more model call fits. Pure; no call is made here.

A limit is checked before it is overrun: a call must fit with its estimated input and the most
output it may give, and that output is lowered as far as it must be.
"""

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
    """Counters of one session, over all its attempts."""

    limits: Limits
    budget: Budget
    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0
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
        if self.limits.tokens is not None:
            room = self.limits.tokens - self.tokens - estimate
            if room < LEAST_OUTPUT_TOKENS:
                return Stopped("max_tokens", _over("tokens", self.limits.tokens, self.tokens))
            output = min(output, room)
        return self._reserve(estimate, output, info.prices)

    def settle(
        self, allowance: Allowance, usage: TokenUsage | None, cost: Decimal | None
    ) -> Decimal:
        """Count a call that ended; without the provider's report it counts at its ceiling.

        Returns what it counts against budgets, in US dollars.
        """
        if usage is None:
            self.tokens += allowance.tokens
        else:
            self.tokens += usage.input + usage.output
        if cost is None:
            self.unpriced_calls += 1
        else:
            self.usd += cost
        settled = allowance.usd if usage is None else cost or Decimal(0)
        self.budget.settle(allowance.usd, settled)
        return settled

    def cost(self) -> Decimal | None:
        """US dollars so far; None when a call that may have cost something is unpriced."""
        return None if self.unpriced_calls else self.usd

    def refund(self, allowance: Allowance) -> Decimal:
        """A call that the provider refused before it did anything costs nothing."""
        self.budget.settle(allowance.usd, Decimal(0))
        return Decimal(0)

    def learn(self, characters: int, usage: TokenUsage) -> None:
        """Take the ratio of tokens to characters from a report."""
        if characters and usage.input:
            self.tokens_per_character = usage.input / characters * SAFETY

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
