"""What a tool is to the engine: a schema for the model, what it asks for, and what it does."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from attrs import Factory, define, frozen

from harness_batch.messages import Image, JsonObject
from harness_batch.processes import Launcher
from harness_batch.rules import Ask


@frozen(kw_only=True)
class ToolResult:
    """What a call came to; never an exception. `output` is the text for the model, unshortened."""

    output: str
    title: str = ""
    status: Literal["completed", "error", "timeout"] = "completed"
    exit_code: int | None = None
    metadata: JsonObject = Factory(dict)
    keep: Literal["head", "tail"] = "head"
    """Which end survives when the output is too long for the model."""
    images: tuple[Image, ...] = ()
    """What the model sees beside the output."""
    whole: Path | None = None
    """File that holds the whole output already, when `output` is only one end of it."""


@define(kw_only=True)
class SessionFiles:
    """Fingerprint of each file when this session last read or wrote it."""

    seen: dict[Path, str] = Factory(dict)


class SecretStream(Protocol):
    """Bytes on their way to a file, piece by piece; what may begin a secret waits for the rest."""

    def let(self, data: bytes) -> bytes:
        """More data; what of it may be written now."""
        ...

    def rest(self) -> bytes:
        """What waited, when nothing more comes."""
        ...

    def cut(self) -> bytes:
        """What waited, when no more is taken: without what may be most of a secret."""
        ...


class Secrets(Protocol):
    """Takes the runner's secrets out of what tools write down."""

    def in_bytes(self, data: bytes) -> bytes:
        """The data without them."""
        ...

    def in_stream(self) -> SecretStream:
        """As `in_bytes`, for data that comes piece by piece."""
        ...

    def finds(self, data: bytes) -> bool:
        """Whether one stands in the data."""
        ...


@frozen
class NoSecrets:
    """`Secrets` and `SecretStream` where none are known."""

    def in_bytes(self, data: bytes) -> bytes:
        """As it is."""
        return data

    def in_stream(self) -> SecretStream:
        """Everything at once."""
        return self

    def let(self, data: bytes) -> bytes:
        """All of it."""
        return data

    def rest(self) -> bytes:
        """Nothing waited."""
        return b""

    def cut(self) -> bytes:
        """Nothing waited."""
        return b""

    def finds(self, data: bytes) -> bool:
        """Never."""
        del data
        return False


NO_SECRETS = NoSecrets()


@frozen(kw_only=True)
class ToolContext:
    """The session a tool works for. One object for all its calls."""

    root: Path
    """The workspace, resolved; nothing outside is touched without `external_directory`."""
    cwd: Path
    """Where relative paths start: `root` or a folder in it."""
    launcher: Launcher
    outputs: Path
    """Folder of the run for whole outputs that were too long; exists."""
    may: Callable[[Ask], bool]
    """What the rules say to an ask beside the call's own (grep leaves out unreadable files)."""
    secrets: Secrets = NO_SECRETS
    """What must not be written into `outputs`."""
    takes_images: bool = False
    """The model does; else a picture is a binary file like any other."""
    tmp: Path | None = None
    """The session's private temporary folder, as its commands see it in TMPDIR."""
    files: SessionFiles = Factory(SessionFiles)
    todos: list[JsonObject] = Factory(list)


class Tool(Protocol):
    """One tool."""

    @property
    def name(self) -> str:
        """As the model calls it."""
        ...

    @property
    def permission(self) -> str:
        """The permission that the tool mainly asks for; a tool no rule can allow is not shown."""
        ...

    @property
    def description(self) -> str:
        """For the model."""
        ...

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments; an object, closed (`additionalProperties: false`)."""
        ...

    def asks(self, arguments: JsonObject, context: ToolContext) -> Sequence[Ask] | ToolResult:
        """What must be allowed first; a ToolResult when no rule could make it work.

        `arguments` are valid by `parameters`. Looks at the file system at most; changes nothing.
        """
        ...

    async def run(self, arguments: JsonObject, context: ToolContext, call_id: str) -> ToolResult:
        """Do it. `call_id` names the file for a whole output. Raises nothing but Cancelled."""
        ...
