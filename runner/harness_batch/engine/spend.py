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

from attrs import define, evolve, field, frozen

from harness_batch.config.record import ModelInfo, Rates
from harness_batch.engine.budget import Budget
from harness_batch.engine.endings import Stopped
from harness_batch.limits import DEFAULTS, Limits
from harness_batch.messages import TokenUsage

FIRST_TOKENS_PER_BYTE = 0.5
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
    short: Stopped | None = None
    """What the session ends with when the reply is cut off: a limit took room from it."""


@frozen
class Busy:
    """The money is there, but held by calls under way: ask again when one has ended."""

    budget: Budget


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
    """Ceilings of calls under way."""
    waited_s: float = 0.0
    """Time spent waiting for a provider to admit us again."""
    usd: Decimal = field(default=Decimal(0))
    unpriced_calls: int = 0
    tokens_per_byte: float = field(default=FIRST_TOKENS_PER_BYTE)

    def allow(
        self, size: int, info: ModelInfo, most: int | None = None
    ) -> Allowance | Busy | Stopped:
        """Reserve a call with a request of `size` bytes, or say which limit forbids it.

        `most` bounds its output tokens further. Output is lowered to what a limit leaves; not for
        what calls under way (children's, other sessions') only hold, since most of it comes back.
        """
        estimate = ceil(size * self.tokens_per_byte)
        output = self._output_ceiling(estimate, info)
        if most is not None:
            output = min(output, most)
        short: Stopped | None = None
        for spend in self._line():
            if spend.limits.tokens is None:
                continue
            over = Stopped("max_tokens", _over("tokens", spend.limits.tokens, spend.tokens))
            room = spend.limits.tokens - spend.tokens - spend.held_tokens - estimate
            if room < output and spend.held_tokens:
                return Busy(spend.budget)
            if room < LEAST_OUTPUT_TOKENS:
                return over
            if room < output:
                output, short = room, over
        allowance = self._reserve(estimate, output, info)
        if isinstance(allowance, Allowance):
            self._hold(allowance.tokens)
            return evolve(allowance, short=allowance.short or short)
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
        settled = allowance.usd if cost is None else cost
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

    def forfeit(self, allowance: Allowance) -> Decimal:
        """A call that went out and was never answered: nobody knows what it cost, at most this."""
        self._hold(-allowance.tokens)
        for spend in self._line():
            spend.tokens += allowance.tokens
        self.budget.settle(allowance.usd, allowance.usd)
        return allowance.usd

    def cut_off(self, allowance: Allowance) -> Stopped | None:
        """A reply ended at its ceiling: what to end with when a limit had lowered that."""
        if allowance.short is not None and allowance.short.reason == "max_cost":
            self.budget.refuse()
        return allowance.short

    def overruns(self, allowance: Allowance, tokens: int, usd: Decimal) -> Iterator[str]:
        """In words, each limit that a settled call passed because it took more than was reserved.

        Prices or estimates were wrong then: a call is never made that should pass a limit.
        """
        for spend in self._line():
            limit = spend.limits.tokens
            if limit is not None and spend.tokens > limit and tokens > allowance.tokens:
                used = f"{tokens} tokens, {allowance.tokens} were reserved"
                yield f"a model call used {used}: {spend.tokens} of {limit} tokens are used"
        for level in self.budget.levels():
            if level.limit is not None and level.spent > level.limit and usd > allowance.usd:
                cost = f"{usd} USD, {allowance.usd} were reserved"
                yield f"a model call cost {cost}: {level.spent} of {level.limit} USD are spent"

    def learn(self, size: int, usage: TokenUsage) -> None:
        """Take the ratio of tokens to bytes from the report of a request of `size` bytes."""
        if size and usage.input:
            self.tokens_per_byte = usage.input / size * SAFETY

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

    def _reserve(self, estimate: int, output: int, info: ModelInfo) -> Allowance | Busy | Stopped:
        rates = info.prices.of(estimate) if info.prices is not None else Rates()
        if rates.input is None or rates.output is None:
            return Allowance(output, estimate + output, Decimal(0))
        kinds = (rates.input, rates.cache_write, rates.cache_write_1h if info.hour_cache else None)
        dearest = max(rate for rate in kinds if rate is not None)
        wanted = _price(estimate, dearest, output, rates.output)
        if (busy := self.budget.held_up(wanted)) is not None:
            return Busy(busy)
        left = self.budget.left()
        if left is None or wanted <= left:
            self.budget.reserve(wanted)
            return Allowance(output, estimate + output, wanted)
        over = self._out_of_money()
        fixed = _price(estimate, dearest, 0, rates.output)
        output = 0 if not rates.output else int((left - fixed) * MILLION / rates.output)
        usd = _price(estimate, dearest, output, rates.output)
        if output < LEAST_OUTPUT_TOKENS or not self.budget.reserve(usd):
            self.budget.refuse()
            return over
        return Allowance(output, estimate + output, usd, over)

    def _out_of_money(self) -> Stopped:
        tightest = self.budget.tightest()
        ours = any(spend.budget is tightest for spend in self._line())
        whose = "cost_usd" if ours else "of the run's cost"
        return Stopped("max_cost", _over(whose, tightest.limit, tightest.spent))


def _price(tokens_in: int, price_in: Decimal, tokens_out: int, price_out: Decimal) -> Decimal:
    """US dollars, rounded up to what the database holds."""
    exact = (tokens_in * price_in + tokens_out * price_out) / MILLION
    return exact.quantize(Decimal("1e-9"), rounding=ROUND_CEILING)


def _over(key: str, limit: object, used: object) -> str:
    return f"the next model call would pass the limit {key} ({limit}; used {used})"
