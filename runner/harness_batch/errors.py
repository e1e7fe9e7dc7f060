"""Every error the house raises on purpose, and whose fault each one is.

HarnessError
├── UserError                 the user's: exit 2, one message, no traceback
│   ├── UsageError            a wrong option, argument or parameter
│   ├── FaultyInput           a file with faults, each with its place (recipe, config)
│   └── Unsupported           something named that this version or host does not do
├── HostError                 the machine's: the session is `errored`, kind infra
│   ├── GitError              git refused or failed
│   ├── SandboxError          a process could not be started or contained
│   └── StorageError          disk or database
├── ProviderError             the model provider's: the session is `errored`, kind provider
│   ├── RateLimited           429; carries the wait that the server asked for
│   ├── Unavailable           5xx
│   │   └── Overloaded        529, "overloaded": too much is asked of the provider
│   ├── ProviderClosed        we ask it no more: its circuit is open
│   ├── NetworkFailure        connection refused, cut or lost
│   ├── ProviderTimeout       no connection, first byte or event in time
│   ├── AuthFailed            401, 403, a missing key
│   ├── ModelRejected         400, 404: unknown model, a request the provider refuses
│   ├── ProtocolBroken        an answer that is not what the wire format promises
│   ├── ContextOverflow       the request is longer than the model's window
│   └── QuotaExhausted        no credit left; waiting does not help
├── CodeHostError             the code host (GitHub) refused or could not be reached: exit 3
└── PatchConflict             a patch does not apply: the answer is no, exit 1

Anything else that reaches the edge is a bug of ours and keeps its traceback.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Literal

from attrs import frozen

CallErrorKind = Literal[
    "rate_limit",
    "unavailable",
    "network",
    "timeout",
    "auth",
    "model",
    "protocol",
    "context_overflow",
    "quota",
]
"""`error_kind` of model calls and turns."""


class HarnessError(Exception):
    """Root of the tree."""


class UserError(HarnessError):
    """The user can mend it; the message says what, where and how."""


class UsageError(UserError):
    """A wrong option, argument or parameter."""


class Unsupported(UserError):
    """Something is asked for by name that this version or host does not do."""


@frozen
class Fault:
    """One thing wrong with a file: place (1-based, 0 = the whole file), message, how bad."""

    file: Path
    line: int
    column: int
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        """`file:line:col: message`, as editors and CI annotations read it."""
        return self._told("warning: " if self.severity == "warning" else "")

    @property
    def text(self) -> str:
        """The same without the word of its severity, for where that is said already."""
        return self._told("")

    def _told(self, severity: str) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else f"{self.file}"
        return f"{place}: {severity}{self.message}"


class FaultyInput(UserError):
    """A file with faults, all of them at once."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


class HostError(HarnessError):
    """The machine's fault."""


class GitError(HostError):
    """git refused or failed; the message holds its own words."""


class SandboxError(HostError):
    """A process could not be started or contained."""


class StorageError(HostError):
    """Disk or database refused; what was acknowledged before is kept."""


class CodeHostError(HarnessError):
    """The code host refused a call, or could not be reached; the message has its own words."""


class PatchConflict(HarnessError):
    """A patch does not apply to the tree at hand."""


class ProviderError(HarnessError):
    """The model provider's fault. `status` is the HTTP status when there was one."""

    kind: ClassVar[CallErrorKind]
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        sent: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.sent = sent
        """The request went out and was never answered: it may have cost something."""
        self.retry_after = retry_after
        """Seconds, when the server said it."""


class RateLimited(ProviderError):
    """429."""

    kind = "rate_limit"
    retryable = True


class Unavailable(ProviderError):
    """5xx."""

    kind = "unavailable"
    retryable = True


class Overloaded(Unavailable):
    """529, "overloaded": too much is asked of the provider, by everybody or by us."""


class ProviderClosed(ProviderError):
    """The provider is asked no more, as waiting does not mend its last errors. Nothing was sent."""

    kind = "unavailable"


class NetworkFailure(ProviderError):
    """Connection refused, cut or lost, or a stream that ended before its end mark."""

    kind = "network"
    retryable = True


class ProviderTimeout(ProviderError):
    """No connection, first byte or event in time."""

    kind = "timeout"
    retryable = True


class AuthFailed(ProviderError):
    """401, 403, or no key at all."""

    kind = "auth"


class ModelRejected(ProviderError):
    """The provider refuses the request: unknown model, bad parameter."""

    kind = "model"


class ProtocolBroken(ProviderError):
    """An answer that is not what the wire format promises (HTML, bad JSON, wrong type)."""

    kind = "protocol"


class ContextOverflow(ProviderError):
    """The request is longer than the model's window."""

    kind = "context_overflow"


class QuotaExhausted(ProviderError):
    """No credit left; waiting does not help."""

    kind = "quota"


@contextmanager
def only_cause() -> Iterator[None]:
    """Raise what a nursery's group is about instead of the group; cancellation passes as it is."""
    try:
        yield
    except BaseExceptionGroup as group:
        cause = cause_of(group)
        if not isinstance(cause, Exception):
            raise
        raise cause from group


def cause_of(error: BaseException) -> BaseException:
    """What a nursery's group is about, or the error itself. The one place that opens groups.

    Storage first, since nothing can be trusted after it; then bugs of ours, which must not hide
    behind an error that came with them; then the first error there is.
    """
    leaves = list(_leaves(error))
    faults = [leaf for leaf in leaves if isinstance(leaf, Exception)]
    storage = (leaf for leaf in faults if isinstance(leaf, StorageError))
    bugs = (leaf for leaf in faults if not isinstance(leaf, HarnessError))
    return (*storage, *bugs, *faults, *leaves)[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
