"""What was said so far, and the reply that is being written; every change is an event."""

from collections.abc import Sequence

from attrs import define, evolve, field

from harness_batch.engine.log import AttemptLog, timestamp
from harness_batch.engine.pictures import IMAGE_BYTES, without_new_images
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

    def interrupt(self) -> Turn:
        """Close the message after a cancellation; calls under way become errors."""
        for part in tuple(self.parts):
            match part.body:
                case ToolUse(state=Pending()) as use:
                    self.change(part, evolve(use, state=Failed(input={}, error=INTERRUPTED)))
                case ToolUse(state=Running(input=arguments)) as use:
                    self.change(part, evolve(use, state=Failed(input=arguments, error=INTERRUPTED)))
                case _:
                    pass
        return self.finish(None, "aborted")


INTERRUPTED = "interrupted"
"""What the record of a tool call says when the session was stopped under it."""


@define
class Transcript:
    """The turns that the model is shown, oldest first, with their size kept up to date."""

    log: AttemptLog
    model: str
    agent: str
    turns: list[Turn] = field(factory=list)
    """Those that are there at first were said in earlier attempts."""
    size: int = field(init=False)
    """UTF-8 bytes of all turns: what token estimates go by."""

    def __attrs_post_init__(self) -> None:
        self.size = sum(map(weight, self.turns))

    def say(self, text: str, *, synthetic: bool = False) -> None:
        """Add a user message; synthetic ones are the runner's own words."""
        draft = self._draft("user")
        draft.add(Text(text=text, synthetic=synthetic))
        self.keep(draft.finish(None))

    def reply(self) -> Draft:
        """Begin the model's next message; `keep` takes it in when it is done."""
        return self._draft("assistant")

    def aside(self) -> Draft:
        """Begin a message of the user's side that the record has and the model is not shown."""
        return self._draft("user")

    def keep(self, turn: Turn) -> None:
        """Take a finished turn into what the model is shown."""
        self.turns.append(turn)
        self.size += weight(turn)

    def replace(self, turns: Sequence[Turn]) -> None:
        """Show the model these turns from now on; the journal keeps what was said."""
        self.turns[:] = turns
        self.size = sum(map(weight, turns))

    def drop_new_images(self) -> bool:
        """Show the model none of the newest reply's images; False when there are none."""
        turns = without_new_images(self.turns)
        if turns is not None:
            self.replace(turns)
        return turns is not None

    def compact(self, last: Turn, summary: str) -> None:
        """Add the message that stands for everything up to `last`."""
        draft = self._draft("user")
        draft.add(Compaction(replaces_up_to=last.message.id, summary=summary))
        self.keep(draft.finish(None))

    def ends_with(self, text: str) -> bool:
        """Whether the newest turn says just that."""
        parts = self.turns[-1].parts if self.turns else ()
        return bool(parts) and isinstance(parts[-1].body, Text) and parts[-1].body.text == text

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
            created_at=timestamp(),
            model=self.model if role == "assistant" else None,
            agent=self.agent,
        )
        self.log.emit(MessageCreated(message))
        return Draft(self.log, message)


def weight(turn: Turn) -> int:
    """How much a turn adds to a request, in UTF-8 bytes."""
    return sum(part_weight(part.body) for part in turn.parts)


def part_weight(body: PartBody) -> int:
    """How much a part adds to a request, in UTF-8 bytes."""
    match body:
        case Text(text=text) | Reasoning(text=text) | Compaction(summary=text):
            return byte_length(text)
        case ToolUse(name=name, state=state):
            return byte_length(name) + _state_weight(state)
        case _:
            return 0


def byte_length(text: str) -> int:
    """Of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _state_weight(state: ToolState) -> int:
    match state:
        case Completed(input=arguments, output=text, images=images):
            shown = IMAGE_BYTES * len(images)
            return byte_length(str(arguments)) + byte_length(text) + shown
        case Failed(input=arguments, error=text):
            return byte_length(str(arguments)) + byte_length(text)
        case Running(input=arguments):
            return byte_length(str(arguments))
        case Pending(partial_input=text):
            return byte_length(text)
