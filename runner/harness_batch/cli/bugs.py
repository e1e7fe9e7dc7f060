"""Bugs of ours at the edge: the traceback into a file, one line for people."""

import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from harness_batch.errors import HarnessError, cause_of

TRACEBACK = "traceback.txt"


class KeptIn:
    """Keeps the traceback of a bug that passes in a run's folder, when there is one by then.

    `mask` takes secrets out of it.
    """

    def __init__(self, folder: Path, mask: Callable[[str], str]) -> None:
        self._folder = folder
        self._mask = mask

    def __enter__(self) -> None:
        """Nothing has happened yet."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the traceback down and note on the error where it lies."""
        if isinstance(error, Exception) and not isinstance(cause_of(error), HarnessError):
            try:
                path = self._folder / TRACEBACK
                path.write_text(self._mask(_text(error)), errors="backslashreplace")
            except OSError:
                return  # `told` finds another place
            error.add_note(f"traceback in {path}")


def told(error: Exception) -> str:
    """One line on a bug, with where its traceback lies."""
    notes: list[str] = getattr(error, "__notes__", [])
    place = notes[-1] if notes else _aside(error)
    cause = traceback.format_exception_only(cause_of(error))[0].strip()
    line = " ".join(cause.split())[:300]
    return f"harness-batch: a bug in harness-batch, please report it: {line} ({place})"


def _aside(error: Exception) -> str:
    try:
        descriptor, name = tempfile.mkstemp(prefix="harness-batch-traceback-", suffix=".txt")
        with os.fdopen(descriptor, "w", errors="backslashreplace") as file:
            file.write(_text(error))
    except OSError as failure:
        return f"its traceback could not be written: {failure.strerror}"
    return f"traceback in {name}"


def _text(error: Exception) -> str:
    return "".join(traceback.format_exception(error))
