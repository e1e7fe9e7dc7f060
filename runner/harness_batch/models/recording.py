"""A recorded session: what models replied, and what the tools answered them then. Plain records.

`recording_file.py` reads and writes them; `replayed.py` plays the replies.
"""

from collections.abc import Mapping
from typing import TypeAlias

from attrs import Factory, frozen

from harness_batch.config.record import ModelInfo
from harness_batch.errors import CallErrorKind
from harness_batch.messages import FinishReason, JsonObject, TokenUsage


@frozen
class Said:
    """A text of the model."""

    text: str


@frozen(kw_only=True)
class Thought:
    """Thinking, with what goes back to the provider unchanged."""

    text: str
    signature: str | None = None
    redacted: bool = False


@frozen(kw_only=True)
class Result:
    """What a tool answered, as the model read it."""

    failed: bool
    """Refused, or ended with an error."""
    output: str


@frozen(kw_only=True)
class Called:
    """A tool call. `arguments` is JSON text as the model wrote it, valid or not."""

    call_id: str
    name: str
    arguments: str
    whole: bool = True
    """False: the reply broke off inside the arguments."""
    result: Result | None = None
    """None: it was never taken up."""


Block: TypeAlias = Said | Thought | Called


@frozen(kw_only=True)
class Trouble:
    """How a request failed, after what had come of its reply."""

    kind: CallErrorKind
    message: str
    status: int | None = None


@frozen(kw_only=True)
class RecordedCall:
    """One request to a model and what came of it."""

    model: str
    """`provider/model`, as it was asked then."""
    purpose: str
    """`step`, or what else it was for."""
    blocks: tuple[Block, ...] = ()
    finish: FinishReason | None = None
    usage: TokenUsage | None = None
    trouble: Trouble | None = None


@frozen(kw_only=True)
class RecordedSession:
    """A session with its requests, in order over its attempts."""

    recipe: str
    """Name of the recipe or sub-recipe."""
    agent: str
    prompts: tuple[str, ...]
    """What each attempt began with."""
    parent: int | None = None
    """Index of the session that started it; None for the first one of a recording."""
    status: str | None = None
    reason: str | None = None
    calls: tuple[RecordedCall, ...] = ()
    checks: Mapping[str, bool] = Factory(dict)
    """Whether each check passed, the last time it ran."""


@frozen(kw_only=True)
class Recording:
    """A session with its child sessions, and what it was about."""

    recipe: str
    """The recipe's file, relative to the recording's, or the name of a bundled one."""
    item: str
    params: JsonObject
    matrix: JsonObject
    agent: str
    base: str | None
    """The commit it started from."""
    options: tuple[tuple[str, str], ...] = ()
    """`--allow`, `--deny` and `--limit` of the command line, in order."""
    windows: Mapping[str, ModelInfo] = Factory(dict)
    """Context and output limits of the models, which decide when a conversation is summarised."""
    sessions: tuple[RecordedSession, ...]
    """The first one is the item's own; parents stand before their children."""


def result_of(call: RecordedCall, call_id: str) -> Result | None:
    """What the tool answered to a call of the reply."""
    found = (b for b in call.blocks if isinstance(b, Called) and b.call_id == call_id)
    return next((block.result for block in found), None)
