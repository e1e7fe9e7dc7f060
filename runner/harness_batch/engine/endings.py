"""How an agent's part of a session can end; the judge makes a status of it."""

from typing import TypeAlias

from attrs import frozen

from harness_batch.records import AttemptErrorKind


@frozen
class Answered:
    """The model finished by itself. `text` is JSON text when the recipe has a schema."""

    text: str


@frozen
class Stopped:
    """We ended it on the work's account: a limit, a rule, a loop. The session is `failed`."""

    reason: str
    """Stable code: `max_steps`, `max_cost`, `permission`, `doom_loop`, `output_length` ..."""
    detail: str
    answer: str = ""


@frozen
class Broke:
    """Provider, host or runner failed. The session is `errored`."""

    reason: str
    """Stable code: `provider_auth`, `git`, `sandbox`, `storage`, `setup`, `internal` ..."""
    detail: str
    kind: AttemptErrorKind
    retryable: bool = False


@frozen
class Interrupted:
    """A signal or a run-level stop. `reason` is that of the StopSignal."""

    reason: str = "interrupted"
    detail: str = "interrupted before it ended"


Ending: TypeAlias = Answered | Stopped | Broke | Interrupted
