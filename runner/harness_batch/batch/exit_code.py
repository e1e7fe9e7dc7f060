"""The exit code tells the truth: one pure function over statuses and the run's own stop."""

from collections.abc import Iterable

from harness_batch.records import Session

INTERRUPTED, TERMINATED = 130, 143


def exit_code(sessions: Iterable[Session], *, stopped: str | None, signal: int | None) -> int:
    """Precedence: 130/143, then 4 (run-level stop), 1 (failed), 3 (errored), 0.

    `signal` is the exit code of the signal that interrupted the run, `stopped` the reason of a
    run-level stop.
    """
    if signal is not None:
        return signal
    if stopped is not None:
        return 4
    own = [session for session in sessions if session.depth == 0]
    statuses = {session.status for session in own}
    if "failed" in statuses:
        return 1
    if statuses & {"errored", "cancelled", None}:
        return 3
    if any(session.reason == "provider_unavailable" for session in own):
        return 3  # skipped, but not because of anything that the user asked for
    return 0
