"""The one place where a nursery's ExceptionGroup becomes the error that it is about."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness_batch.errors import HarnessError


@contextmanager
def only_cause() -> Iterator[None]:
    """Raise the first error of ours instead of the group around it; other groups pass."""
    try:
        yield
    except BaseExceptionGroup as group:
        cause = _first(group)
        if cause is None:
            raise
        raise cause from group


def _first(group: BaseExceptionGroup) -> HarnessError | None:
    for error in group.exceptions:
        if isinstance(error, HarnessError):
            return error
        if isinstance(error, BaseExceptionGroup) and (found := _first(error)) is not None:
            return found
    return None
