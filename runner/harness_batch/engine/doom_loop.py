"""Is the model stuck? Pure: the calls so far and the next one in, yes or no out.

The window is the whole session, across messages: a loop usually spreads over many of them.
"""

import json
from collections.abc import Sequence
from hashlib import blake2b

from attrs import define, field, frozen

from harness_batch.messages import JsonObject

REPEATS = 3
"""So many equal calls in a row, or so many rounds of a cycle, and the next one is a loop."""
LONGEST_CYCLE = 4


@frozen
class Call:
    """A tool call by its fingerprints."""

    tool: str
    arguments: str
    result: str = ""

    @classmethod
    def of(cls, tool: str, arguments: JsonObject) -> "Call":
        """Equal for arguments that differ in the order of keys only."""
        return cls(tool, _fingerprint(json.dumps(arguments, sort_keys=True, ensure_ascii=True)))

    def same_input(self, other: "Call") -> bool:
        """Tool and arguments are equal, whatever came out."""
        return (self.tool, self.arguments) == (other.tool, other.arguments)


@define
class Window:
    """The newest calls of a session, as many as the longest cycle needs."""

    calls: list[Call] = field(factory=list)

    def stuck(self, following: Call) -> bool:
        """True when running `following` would repeat what just happened `REPEATS` times."""
        return is_stuck(self.calls, following)

    def add(self, call: Call, result: str) -> None:
        """Remember a call that was run, with what it answered."""
        self.calls.append(Call(call.tool, call.arguments, _fingerprint(result)))
        del self.calls[: -REPEATS * LONGEST_CYCLE]

    def reset(self) -> None:
        """Forget: a rule allowed the repetition."""
        self.calls.clear()


def is_stuck(calls: Sequence[Call], following: Call) -> bool:
    """Equal input `REPEATS` times in a row, or a cycle of 2-4 calls with equal results as often."""
    newest = calls[-REPEATS:]
    if len(newest) == REPEATS and all(call.same_input(following) for call in newest):
        return True
    return any(_cycles(calls, length, following) for length in range(2, LONGEST_CYCLE + 1))


def _cycles(calls: Sequence[Call], length: int, following: Call) -> bool:
    window = calls[-length * REPEATS :]
    if len(window) < length * REPEATS or not window[0].same_input(following):
        return False
    return all(call == window[i % length] for i, call in enumerate(window))


def _fingerprint(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
