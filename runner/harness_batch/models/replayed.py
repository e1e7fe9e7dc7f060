"""A model that replies what was recorded. It is free, asks nobody, and never waits.

All models of one session (its fallbacks, the one that summarises) play from one reel, since the
engine asks them in the order in which it asked then, as long as the tools answer as then.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager

import trio
from attrs import define, evolve, field, frozen

from harness_batch.config.record import ModelInfo
from harness_batch.errors import (
    AuthFailed,
    ContextOverflow,
    ModelRejected,
    NetworkFailure,
    ProtocolBroken,
    ProviderError,
    ProviderTimeout,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from harness_batch.messages import Completed, Failed, ModelRef, Turn
from harness_batch.models.pricing import FREE
from harness_batch.models.protocol import (
    Finish,
    LlmEvent,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ReplyStarted,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from harness_batch.models.recording import (
    Block,
    Called,
    RecordedCall,
    RecordedSession,
    Recording,
    Said,
    Thought,
    Trouble,
    result_of,
)
from harness_batch.models.renames import Renames

STEP = "step"
_OWN_WORDS = "the recording "
"""How errors begin that no provider ever sent."""
_ERRORS: dict[str, type[ProviderError]] = {
    kind.kind: kind
    for kind in (
        RateLimited,
        Unavailable,
        NetworkFailure,
        ProviderTimeout,
        AuthFailed,
        ModelRejected,
        ProtocolBroken,
        ContextOverflow,
        QuotaExhausted,
    )
}


@define
class Reel:
    """A recorded session being played: whose turn it is."""

    session: RecordedSession
    renames: Renames
    at: int = 0
    _overflowed: int = -1
    """Where the conversation was said to be too long, as the recording goes on with a summary."""
    _heard: set[str] = field(factory=set)
    """Messages whose tool calls were looked at."""

    def next(self, purpose: str) -> RecordedCall:
        """The next recorded reply.

        Raises: ProtocolBroken when the recording has none; ContextOverflow when it goes on with a
        summary of the conversation, which the engine has not asked for.
        """
        calls = self.session.calls
        if purpose == STEP and self._overflowed == self.at:
            while self.at < len(calls) and calls[self.at].purpose != STEP:
                self.at += 1  # the engine found no need for a summary, and was told that there is
        if self.at >= len(calls):
            return self._last(purpose)
        call = calls[self.at]
        if purpose == STEP and call.purpose != STEP:
            self._overflowed = self.at
            raise ContextOverflow("the recording goes on with a summary of the conversation")
        if purpose != STEP and call.purpose == STEP:
            raise ProtocolBroken(f"the recording has no {purpose} here")
        self.at += 1
        return call

    def _last(self, purpose: str) -> RecordedCall:
        """The last answer again: background jobs may end at another moment and ask for one more."""
        last = self.session.calls[-1:] if purpose == STEP else ()
        for call in last:
            if call.finish == "stop" and not any(isinstance(b, Called) for b in call.blocks):
                return call
        replies = len(self.session.calls)
        raise ProtocolBroken(f"the recording ends here, after {replies} replies")

    def hear(self, turns: Sequence[Turn]) -> None:
        """Learn today's names from what the tools have answered."""
        for turn in turns[-2:]:
            if turn.message.role == "assistant" and turn.message.id not in self._heard:
                self._heard.add(turn.message.id)
                self._compare(turn)

    def _compare(self, turn: Turn) -> None:
        for use in turn.tool_uses():
            recorded = (result_of(call, use.call_id) for call in self.session.calls[: self.at])
            then = next((r for r in recorded if r is not None), None)
            match use.state:
                case Completed(output=now) | Failed(error=now) if then is not None:
                    self.renames.learn(then.output, now)
                case _:
                    pass


def is_of_replay(call: RecordedCall) -> bool:
    """Whether a request failed because a recording was being played, not as it was recorded."""
    said = call.trouble.message if call.trouble is not None else ""
    return not call.blocks and said.startswith(_OWN_WORDS)


@frozen
class Played:
    """The reels of one recording, for one session of the plan and its children."""

    recording: Recording
    renames: Renames = field(factory=Renames)
    _reels: dict[int, Reel] = field(factory=dict)
    _begun: dict[int, int] = field(factory=dict)
    """How many attempts of each session have been begun."""

    def main(self) -> Reel:
        """Of the item's own session, from its beginning."""
        return self._begin(0)

    def child(self, recipe: str, agent: str, prompt: str) -> Reel | None:
        """Of the child session that was given this to do; None when the recording has none."""
        fitting = [
            at
            for at, session in enumerate(self.recording.sessions)
            if at and (session.recipe, session.agent) == (recipe, agent)
        ]
        unused = [at for at in fitting if self._next_prompt(at) is not None]
        meant = (at for at in unused if prompt.strip() in (self._next_prompt(at) or ""))
        at = next(meant, next(iter(unused), None))
        return None if at is None else self._begin(at)

    def info(self, session: RecordedSession) -> ModelInfo:
        """Of the first model that was asked."""
        name = session.calls[0].model if session.calls else ""
        return evolve(self.recording.windows.get(name, ModelInfo()), prices=FREE)

    def _next_prompt(self, at: int) -> str | None:
        prompts, begun = self.recording.sessions[at].prompts, self._begun.get(at, 0)
        return self.renames.in_text(prompts[begun]) if begun < len(prompts) else None

    def _begin(self, at: int) -> Reel:
        self._begun[at] = self._begun.get(at, 0) + 1
        if at not in self._reels:
            self._reels[at] = Reel(self.recording.sessions[at], self.renames)
        return self._reels[at]


def models_asked(session: RecordedSession) -> int:
    """How many models the session's steps were asked of, one after the other; at least one."""
    asked = [call.model for call in session.calls if call.purpose == STEP]
    return max(1, len(dict.fromkeys(asked)))


class ReplayedModel:
    """One session's playing of a reel, for one purpose."""

    def __init__(
        self, ref: ModelRef, reel: Reel, info: ModelInfo | None = None, purpose: str = STEP
    ) -> None:
        self.ref = ref
        self.info = info or ModelInfo(prices=FREE)
        self._reel = reel
        self._purpose = purpose

    @asynccontextmanager
    async def stream(
        self, request: ModelRequest
    ) -> AsyncIterator[AsyncIterator[Sequence[LlmEvent]]]:
        """The next recorded reply."""
        await trio.lowlevel.checkpoint()
        if self._purpose == STEP:
            self._reel.hear(request.turns)
        call = self._reel.next(self._purpose)
        async with aclosing(_reply(call, self._reel.renames)) as batches:
            yield batches

    def demand(self) -> None:
        """A recording needs no key."""

    async def renew(self) -> bool:
        """Whether another credential was tried then."""
        await trio.lowlevel.checkpoint()
        calls, at = self._reel.session.calls, self._reel.at
        return 0 < at < len(calls) and calls[at].model == calls[at - 1].model

    async def aclose(self) -> None:
        """There is no connection."""


async def _reply(call: RecordedCall, renames: Renames) -> AsyncGenerator[Sequence[LlmEvent], None]:
    if call.blocks or call.trouble is None:
        counted = call.usage if call.trouble is not None else None
        yield [ReplyStarted(response_model=call.model, usage=counted)]
    for number, block in enumerate(call.blocks):
        await trio.lowlevel.checkpoint()
        yield list(_events(block, f"block_{number}", renames))
    if any(isinstance(block, Called) and block.result for block in call.blocks):
        await trio.lowlevel.checkpoint()  # what ran then begins before the reply can break off
        await trio.lowlevel.checkpoint()
    if call.trouble is not None:
        raise _error(call.trouble)
    yield [Finish(call.finish or "unknown", call.usage)]


def _events(block: Block, key: str, renames: Renames) -> Iterator[LlmEvent]:
    match block:
        case Said(text=text):
            yield from (TextStart(key), TextDelta(key, renames.in_text(text)), TextEnd(key))
        case Thought(text=text):
            yield ReasoningStart(key, redacted=block.redacted)
            yield ReasoningDelta(key, text)
            yield ReasoningEnd(key, block.signature)
        case Called(call_id=call_id, name=name):
            arguments = renames.in_text(block.arguments)
            yield ToolInputStart(call_id, name)
            yield ToolInputDelta(call_id, arguments)
            if block.whole:
                yield ToolCall(call_id, name, arguments)


def _error(trouble: Trouble) -> ProviderError:
    # Nobody has to be spared: what was waited for then is not waited for again.
    kind = _ERRORS[trouble.kind]
    return kind(trouble.message, status=trouble.status, retry_after=0.0)
