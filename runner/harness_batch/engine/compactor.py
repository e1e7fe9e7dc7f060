"""Makes room in the window: prunes, and lets the small model write a summary if need be."""

from attrs import define, field

from harness_batch.engine.compaction import (
    FULL,
    SUMMARY_TOKENS,
    cut,
    is_full,
    next_input,
    pruned,
    reply_room,
    resumption,
    summary_request,
)
from harness_batch.engine.endings import Broke, Ending, Stopped
from harness_batch.engine.spend import Spend
from harness_batch.engine.step import Stepper
from harness_batch.engine.transcript import Transcript
from harness_batch.errors import ContextOverflow
from harness_batch.events import Notice
from harness_batch.limits import DEFAULTS
from harness_batch.messages import Turn

UNSHRINKABLE = "the request is longer than the model's window and cannot be shortened further"
LEAST_REQUEST_BYTES = 1000
"""A request for a summary that must be shorter than this is not made."""


@define
class Compactor:
    """Keeps one attempt's transcript inside the window of its model."""

    transcript: Transcript
    stepper: Stepper
    """Of the conversation: its model's window is what counts."""
    summariser: Stepper
    """Of the small model; its transcript is its own."""
    spend: Spend
    prompt: str
    """The task, kept word for word."""
    settled: bool = field(default=False)
    """Room was made and no reply has come since: the window is as empty as it gets."""

    def window_full(self) -> bool:
        """Whether room must be made before the next request."""
        return not self.settled and self._is_full(
            next_input(self.transcript.turns, self.spend.tokens_per_byte)
        )

    def replied(self) -> None:
        """The model has answered: what it reported counts from now on."""
        self.settled = False

    async def make_room(self, overflow: ContextOverflow | None = None) -> Ending | None:
        """Prune, then summarise if still needed; the ending when that fails.

        `overflow`: the provider itself said that the request is too long; then pruning alone is
        not trusted. Raises: ProviderError of the small model.
        """
        if overflow is not None and self.settled:
            return _hopeless(overflow)
        self.settled = True
        lighter = pruned(self.transcript.turns, self.spend.tokens_per_byte)
        if lighter is not None:
            self.transcript.replace(lighter.turns)
            self._tell(
                f"{lighter.freed} bytes of old tool output were pruned from the model's view"
            )
        if overflow is None and lighter is not None and not self._is_full(None):
            return None
        return await self._summarise(overflow)

    async def _summarise(self, overflow: ContextOverflow | None) -> Ending | None:
        usable = self._usable(overflowed=overflow is not None)
        parts = cut(self.transcript.turns, usable, self.spend.tokens_per_byte)
        if len(parts.head) <= 1:
            return None if overflow is None else _hopeless(overflow)
        summary = await self._summary(parts.head)
        if isinstance(summary, Stopped):
            return summary
        if not summary.strip():
            return Broke("context_overflow", "the small model gave no summary", "provider")
        self.transcript.compact(parts.head[-1], resumption(self.prompt, summary))
        self.transcript.replace([self.transcript.turns[-1], *parts.tail])
        self._tell(
            f"the conversation was summarised: its window was full"
            f" ({len(parts.head)} messages summarised, {len(parts.tail)} kept)"
        )
        return None

    async def _summary(self, head: tuple[Turn, ...]) -> str | Stopped:
        """The small model's words; its own window may be smaller than anybody knows."""
        most = self._most_bytes()
        while True:
            self.summariser.transcript.replace([])
            self.summariser.transcript.say(summary_request(head, most), synthetic=True)
            try:
                outcome = await self.summariser.take(last=True)
            except ContextOverflow:
                most = min(most, self.summariser.transcript.size) // 2
                if most < LEAST_REQUEST_BYTES:
                    raise
            else:
                return outcome if isinstance(outcome, Stopped) else outcome.text()

    def _is_full(self, tokens: int | None) -> bool:
        """`tokens` of the next request; None: nothing was reported, an estimate has to do."""
        if tokens is None:
            tokens = self._estimate()
        return is_full(tokens, self.stepper.model.info, self._reply_room())

    def _estimate(self) -> int:
        """Tokens of the whole request."""
        size = self.transcript.size + self.stepper.fixed_size
        return int(self.spend.tokens_per_byte * size)

    def _usable(self, *, overflowed: bool) -> int | None:
        """The window beside the reply. It is smaller than a request that was too long for it."""
        context = self.stepper.model.info.context
        known = [] if context is None else [context - self._reply_room()]
        return min((*known, *((self._estimate(),) if overflowed else ())), default=None)

    def _most_bytes(self) -> int:
        info = self.summariser.model.info
        context = info.context or self.stepper.model.info.context
        if context is None:
            return max(self.transcript.size // 2, 10 * LEAST_REQUEST_BYTES)
        tokens = (context - min(SUMMARY_TOKENS, context // 2)) * FULL
        fixed = self.summariser.fixed_size
        return max(LEAST_REQUEST_BYTES, int(tokens / self.spend.tokens_per_byte) - fixed)

    def _reply_room(self) -> int:
        limit = self.spend.limits.output_tokens or DEFAULTS.output_tokens or 0
        return reply_room(self.stepper.model.info, limit)

    def _tell(self, text: str) -> None:
        self.stepper.log.emit(Notice("info", text))


def _hopeless(overflow: ContextOverflow) -> Broke:
    return Broke("context_overflow", f"{UNSHRINKABLE}: {overflow}", "provider")
