"""Makes room in the window: prunes, and lets the small model write a summary if need be."""

from attrs import define, field

from harness_batch.engine.compaction import (
    FULL,
    SUMMARY_TOKENS,
    cut,
    is_full,
    newest_usage,
    pruned,
    resumption,
    summary_request,
)
from harness_batch.engine.endings import Broke, Ending, Stopped
from harness_batch.engine.spend import Spend
from harness_batch.engine.step import Stepper
from harness_batch.engine.transcript import Transcript
from harness_batch.events import Notice
from harness_batch.limits import DEFAULTS
from harness_batch.messages import Turn

UNSHRINKABLE = "the request is longer than the model's window and cannot be shortened further"


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
    settled: str | None = None
    """Id of the newest reply when room was made last; its report says nothing any more."""
    just_made_room: bool = field(default=False)
    """No reply has come since."""

    def window_full(self, reply: Turn | None) -> bool:
        """Whether room must be made before the next request."""
        usage = newest_usage(self.transcript.turns)
        if reply is None or usage is None or reply.message.id == self.settled:
            return False
        return is_full(usage, self.stepper.model.info, self._output_tokens())

    async def make_room(self, reply: Turn | None, *, overflowed: bool) -> Ending | None:
        """Prune, then summarise if still needed; the ending when that fails.

        `overflowed`: the provider itself said that the request is too long; then pruning alone is
        not trusted. Raises: ProviderError of the small model.
        """
        if overflowed and self.just_made_room:
            return Broke("context_overflow", UNSHRINKABLE, "provider")
        self.settled = reply.message.id if reply else None
        self.just_made_room = True
        lighter = pruned(self.transcript.turns, self.spend.tokens_per_character)
        if lighter is not None:
            self.transcript.replace(lighter)
            self._tell("old tool output was pruned from the model's view")
        if not overflowed and not self._still_full():
            return None
        return await self._summarise(overflowed=overflowed)

    async def _summarise(self, *, overflowed: bool) -> Ending | None:
        info, ratio = self.stepper.model.info, self.spend.tokens_per_character
        parts = cut(self.transcript.turns, info.context, ratio)
        if len(parts.head) <= 1:
            return Broke("context_overflow", UNSHRINKABLE, "provider") if overflowed else None
        self.summariser.transcript.replace([])
        self.summariser.transcript.say(
            summary_request(parts.head, self._most_characters()), synthetic=True
        )
        outcome = await self.summariser.take(last=True)
        if isinstance(outcome, Stopped):
            return outcome
        summary = outcome.text()
        if not summary.strip():
            return Broke("context_overflow", "the small model gave no summary", "provider")
        self.transcript.compact(parts.head[-1], resumption(self.prompt, summary))
        self.transcript.replace([self.transcript.turns[-1], *parts.tail])
        self._tell("the conversation was summarised: its window was full")
        return None

    def _still_full(self) -> bool:
        info = self.stepper.model.info
        tokens = self.spend.tokens_per_character * (
            self.transcript.size + self.stepper.fixed_characters
        )
        return info.context is not None and (
            tokens > FULL * info.context or tokens + self._output_tokens() > info.context
        )

    def _most_characters(self) -> int:
        info = self.summariser.model.info
        context = info.context or self.stepper.model.info.context
        if context is None:
            return max(self.transcript.size // 2, 10_000)
        return max(1000, int((context - SUMMARY_TOKENS) * FULL / self.spend.tokens_per_character))

    def _output_tokens(self) -> int:
        return self.spend.limits.output_tokens or DEFAULTS.output_tokens or 0

    def _tell(self, text: str) -> None:
        self.stepper.log.emit(Notice("info", text))
