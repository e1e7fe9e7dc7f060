"""What every journal of every run must hold to, whatever happened in it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from attrs import define, field

from harness_batch import events
from harness_batch.events import Event
from harness_batch.messages import Message, Part, Pending, Running, Text, ToolUse
from harness_batch.records import ModelCall, ToolCall

NOTE = "More than 80% of what this session may use"


@define
class Read:
    """A journal taken in, event by event."""

    wrongs: list[str] = field(factory=list)
    open_calls: dict[str, ModelCall] = field(factory=dict)
    closed_calls: set[str] = field(factory=set)
    open_tools: dict[str, ToolCall] = field(factory=dict)
    finished_tools: set[str] = field(factory=set)
    open_attempts: dict[str, str] = field(factory=dict)
    """Session -> attempt."""
    ended_attempts: set[str] = field(factory=set)
    terminal: Counter[str] = field(factory=Counter)
    """Session -> events that gave it a status."""
    open_messages: dict[str, Message] = field(factory=dict)
    messages: dict[str, Message] = field(factory=dict)
    parts: dict[str, dict[int, Part]] = field(factory=lambda: defaultdict(dict))
    judged: set[str] = field(factory=set)

    def take(self, event: Event) -> None:  # noqa: C901, PLR0912 - one case an event
        match event.payload:
            case events.SessionCreated(session):
                self._must(session.session_id not in self.terminal, "created after its end")
                self.terminal[session.session_id] = 0
            case events.SessionUpdated(session):
                self.terminal[session.session_id] += session.status is not None
                self._must(session.session_id not in self.open_attempts, "ended in an attempt")
            case events.SessionStarted(attempt):
                self.open_attempts[attempt.session_id] = attempt.attempt_id
            case events.SessionFinished(attempt):
                self._ended(attempt.session_id, attempt.attempt_id)
            case events.ModelCallOpened(call):
                self._must(call.model_call_id not in self.open_calls, "opened twice")
                self._must(call.session_id in self.open_attempts, "a call outside of an attempt")
                self.open_calls[call.model_call_id] = call
            case events.ModelCallClosed(call):
                opened = self.open_calls.pop(call.model_call_id, None)
                self._must(opened is not None, "closed and not open")
                self._must(call.duration_s is not None, "closed without a duration")
                self.closed_calls.add(call.model_call_id)
            case events.ToolCallStarted(tool_call):
                self._must(tool_call.message_id in self.open_messages, "a call out of a message")
                self.open_tools[tool_call.tool_call_id] = tool_call
            case events.ToolCallFinished(tool_call):
                began = self.open_tools.pop(tool_call.tool_call_id, None)
                self._must(began is not None, "finished and not started")
                self._must(tool_call.status is not None, "finished without a status")
                self.finished_tools.add(tool_call.tool_call_id)
            case events.PermissionDecided(decision):
                self._must(decision.tool_call_id in self.open_tools, "judged and not under way")
            case events.MessageCreated(message):
                self._must(message.id not in self.messages, "a message twice")
                self.open_messages[message.id] = self.messages[message.id] = message
            case events.MessageUpdated(message):
                self._finished(message)
            case events.PartCreated(part):
                known = self.parts[part.message_id]
                self._must(part.message_id in self.open_messages, "a part of no open message")
                self._must(part.idx == len(known), "a part out of order")
                known[part.idx] = part
            case events.PartUpdated(part):
                self._must(part.message_id in self.open_messages, "a part changed after the end")
                self._must(self.parts[part.message_id][part.idx].id == part.id, "another part")
                self.parts[part.message_id][part.idx] = part
            case events.PartDelta(part_id, message_id, _):
                ids = {part.id for part in self.parts[message_id].values()}
                self._must(part_id in ids, "a delta of no part")
            case _:
                pass

    def _ended(self, session_id: str, attempt_id: str) -> None:
        self._must(self.open_attempts.pop(session_id, None) == attempt_id, "ended, not started")
        self._must(attempt_id not in self.ended_attempts, "ended twice")
        self.ended_attempts.add(attempt_id)
        for kind, still in (("call", self.open_calls), ("tool", self.open_tools)):
            left = [one for one in still.values() if one.attempt_id == attempt_id]
            self._must(not left, f"a {kind} is open at the end")
        left_open = [m for m in self.open_messages.values() if m.attempt_id == attempt_id]
        self._must(not left_open, "a message is open at the end")

    def _finished(self, message: Message) -> None:
        self._must(self.open_messages.pop(message.id, None) is not None, "finished, not open")
        self.messages[message.id] = message
        for part in self.parts[message.id].values():
            if isinstance(part.body, ToolUse):
                state = part.body.state
                self._must(not isinstance(state, Pending | Running), f"finished with a {state}")

    def _must(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrongs.append(what)


def faults(told: Sequence[Event]) -> Iterator[str]:
    """In words, everything that a journal of a whole run breaks; nothing when it is sound."""
    read = Read()
    for number, event in enumerate(told, 1):
        if event.seq != number:
            yield f"event {number} has seq {event.seq}"
        read.take(event)
    yield from read.wrongs
    for session_id, times in read.terminal.items():
        if times != 1:
            yield f"{session_id} ended {times} times"
    for what, left in (
        ("model calls", read.open_calls),
        ("tool calls", read.open_tools),
        ("attempts", read.open_attempts),
        ("messages", read.open_messages),
    ):
        if left:
            yield f"{what} are open: {list(left)}"
    yield from _noted_twice(read)


def _noted_twice(read: Read) -> Iterator[str]:
    notes = Counter(
        part.session_id
        for parts in read.parts.values()
        for part in parts.values()
        if isinstance(part.body, Text) and part.body.text.startswith(NOTE)
    )
    for session_id, times in notes.items():
        if times > 1:
            yield f"{session_id} was told to wrap up {times} times"
