"""A conversation of another agent after the door: who said what, what was called, what it took."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from attrs import frozen

from harness_batch.messages import FinishReason, PartBody, Role, TokenUsage

Ending = Literal["passed", "errored", "cancelled"]


@frozen(kw_only=True)
class Called:
    """One model reply, as far as the transcript tells of the request behind it."""

    provider: str
    model: str
    usage: TokenUsage | None
    """None: the transcript does not say."""
    usage_raw: Any = None
    response_id: str | None = None
    reported_usd: Decimal | None = None
    """What the other agent says that it cost."""
    duration_s: float | None = None
    error_kind: str | None = None


@frozen(kw_only=True)
class Said:
    """A message with its parts; an assistant's may stand for several model calls."""

    id: str
    role: Role
    at: datetime
    bodies: tuple[PartBody, ...] = ()
    calls: tuple[Called, ...] = ()
    finish: FinishReason | None = None
    error: str | None = None


@frozen(kw_only=True)
class Transcript:
    """One session. Children name their parent's id."""

    agent: str
    """`claude-code`, `codex`, `gemini-cli`, `opencode`."""
    id: str
    said: tuple[Said, ...]
    ending: Ending
    parent_id: str | None = None
    role: str | None = None
    """What kind of agent it was, in the other agent's word."""
    version: str | None = None
    folder: str | None = None
    """Where it worked."""
    branch: str | None = None
    commit: str | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """`PROVIDER/MODEL` of all calls, the first one first."""
        named = (f"{call.provider}/{call.model}" for one in self.said for call in one.calls)
        return tuple(dict.fromkeys(named))

    @property
    def usage(self) -> TokenUsage:
        """All tokens."""
        usages = (call.usage for one in self.said for call in one.calls if call.usage)
        return sum(usages, TokenUsage())
