"""An error that ended an attempt, as its ending: whose fault it is, and a trace of our own bugs."""

import traceback
from collections.abc import Callable

from harness_batch.engine.endings import Broke
from harness_batch.engine.loop import broke
from harness_batch.errors import (
    GitError,
    HarnessError,
    ProviderError,
    SandboxError,
    StorageError,
    cause_of,
)


def failure(error: Exception, write_trace: Callable[[bytes], None]) -> Broke:
    """The ending. Raises: StorageError, since nothing can be written down any more."""
    match cause_of(error):
        case StorageError() as cause:
            raise cause from error
        case ProviderError() as cause:
            return broke(cause)
        case GitError() as cause:
            return Broke("git", str(cause), "infra")
        case SandboxError() as cause:
            return Broke("sandbox", str(cause), "infra")
        case HarnessError() as cause:
            return Broke("host", str(cause), "infra")
        case cause:
            trace = "".join(traceback.format_exception(error))
            write_trace(trace.encode("utf-8", "replace"))
            last = traceback.format_exception_only(cause)[0].strip()
            detail = f"a bug in the runner, see traceback.txt: {last[:200]}"
            return Broke("internal", detail, "infra")
