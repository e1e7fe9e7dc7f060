"""What was said so far, and the reply that is being written; every change is an event."""

from collections.abc import Sequence

from attrs import define, evolve, field

from harness_batch.engine.log import AttemptLog
from harness_batch.events import (
    MessageCreated,
    MessageUpdated,
    PartCreated,
    PartDelta,
    PartUpdated,
)
from harness_batch.ids import new_id
from harness_batch.messages import (
    Compaction,
    Completed,
    Failed,
    FinishReason,
    Message,
    Part,
    PartBody,
    Pending,
    Reasoning,
    Running,
    Text,
    ToolState,
    ToolUse,
    Turn,
)


@define
class Draft:
    """A message under way. Parts are kept whole here; streamed text goes out as deltas."""

    log: AttemptLog
    message: Message
    parts: list[Part] = field(factory=list)

    def add(self, body: PartBody) -> Part:
        """Begin a part at the end of the message."""
        part = Part(
            id=new_id("prt"),
            message_id=self.message.id,
            session_id=self.message.session_id,
            idx=len(self.parts),
            body=body,
        )
        self.parts.append(part)
        self.log.emit(PartCreated(part))
        return part

    def change(self, part: Part, body: PartBody) -> Part:
        """Give the part its new content."""
        changed = evolve(part, body=body)
        self.parts[part.idx] = changed
        self.log.emit(PartUpdated(changed))
        return changed

    def stream(self, part: Part, delta: str) -> None:
        """Tell of more text; the whole part follows by `change`."""
        self.log.emit(PartDelta(part.id, part.message_id, delta))

    def turn(self) -> Turn:
        """The message as it is now."""
        return Turn(self.message, tuple(self.parts))

    def finish(self, reason: FinishReason | None, error: str | None = None) -> Turn:
        """Close the message; `error` is `aborted` or the kind of the provider's error."""
        self.message = evolve(self.message, finish_reason=reason, error=error)
        self.log.emit(MessageUpdated(self.message))
        return self.turn()

    def break_off(self) -> None:
        """The stream failed: calls that it had not completed will never run."""
        self._fail_pending(BROKEN_OFF)

    def _fail_pending(self, error: str) -> None:
        for part in tuple(self.parts):
            match part.body:
                case ToolUse(call_id=call_id, name=name, state=Pending()):
                    state = Failed(input={}, error=error)
                    self.change(part, ToolUse(call_id=call_id, name=name, state=state))
                case _:
                    pass

    def interrupt(self) -> Turn:
        """Close the message after a cancellation; calls under way become errors."""
        self._fail_pending(INTERRUPTED)
        for part in tuple(self.parts):
            match part.body:
                case ToolUse(call_id=call_id, name=name, state=Running(input=arguments)):
                    state = Failed(input=arguments, error=INTERRUPTED)
                    self.change(part, ToolUse(call_id=call_id, name=name, state=state))
                case _:
                    pass
        return self.finish(None, "aborted")


INTERRUPTED = "interrupted"
"""What the record of a tool call says when the session was stopped under it."""
BROKEN_OFF = "the reply broke off before this call was complete; it was interrupted and did not run"
"""As INTERRUPTED, for calls that were never taken up."""


@define
class Transcript:
    """The turns that the model is shown, oldest first, with their size kept up to date."""

    log: AttemptLog
    model: str
    agent: str
    turns: list[Turn] = field(factory=list)
    size: int = 0
    """Characters of all turns: what token estimates go by."""

    def say(self, text: str, *, synthetic: bool = False) -> None:
        """Add a user message; synthetic ones are the runner's own words."""
        draft = self._draft("user")
        draft.add(Text(text=text, synthetic=synthetic))
        self.keep(draft.finish(None))

    def reply(self) -> Draft:
        """Begin the model's next message; `keep` takes it in when it is done."""
        return self._draft("assistant")

    def keep(self, turn: Turn) -> None:
        """Take a finished turn into what the model is shown."""
        self.turns.append(turn)
        self.size += sum(characters(part.body) for part in turn.parts)

    def replace(self, turns: Sequence[Turn]) -> None:
        """Show the model these turns from now on; the journal keeps what was said."""
        self.turns[:] = turns
        self.size = sum(characters(part.body) for turn in turns for part in turn.parts)

    def compact(self, last: Turn, summary: str) -> None:
        """Add the message that stands for everything up to `last`."""
        draft = self._draft("user")
        draft.add(Compaction(replaces_up_to=last.message.id, summary=summary))
        self.keep(draft.finish(None))

    def newest_reply(self) -> Turn | None:
        """The last turn when it is the model's."""
        last = self.turns[-1] if self.turns else None
        return last if last and last.message.role == "assistant" else None

    def _draft(self, role: str) -> Draft:
        message = Message(
            id=new_id("msg"),
            session_id=self.log.session_id,
            attempt_id=self.log.attempt_id,
            role="assistant" if role == "assistant" else "user",
            created_at=self.log.now(),
            model=self.model if role == "assistant" else None,
            agent=self.agent,
        )
        self.log.emit(MessageCreated(message))
        return Draft(self.log, message)


def characters(body: PartBody) -> int:
    """How much a part adds to a request."""
    match body:
        case Text(text=text) | Reasoning(text=text) | Compaction(summary=text):
            return len(text)
        case ToolUse(name=name, state=state):
            return len(name) + _state_characters(state)
        case _:
            return 0


def _state_characters(state: ToolState) -> int:
    match state:
        case Completed(input=arguments, output=output):
            return len(str(arguments)) + len(output)
        case Failed(input=arguments, error=error):
            return len(str(arguments)) + len(error)
        case Running(input=arguments):
            return len(str(arguments))
        case Pending(partial_input=text):
            return len(text)
