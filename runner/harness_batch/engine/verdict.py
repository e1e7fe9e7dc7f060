"""Passed, failed, errored or cancelled: one pure function decides, from everything known."""

from collections.abc import Sequence

from attrs import frozen

from harness_batch.engine.endings import Answered, Broke, Ending, Interrupted, Stopped
from harness_batch.engine.quarantine import LEAK
from harness_batch.records import AttemptErrorKind, CheckResult, Status


@frozen
class Verdict:
    """An attempt's outcome. `reason` is a stable code, `detail` one line of words."""

    status: Status
    reason: str | None = None
    detail: str | None = None
    error_kind: AttemptErrorKind | None = None
    retryable: bool = False


def judge(
    ending: Ending,
    checks: Sequence[CheckResult],
    *,
    patch_refused: str | None,
    has_patch: bool,
    leaked: Sequence[str] = (),
) -> Verdict:
    """The first thing that is wrong names the reason; a secret in an output comes before all."""
    if leaked:
        told = f"{LEAK} ({', '.join(leaked)}); what it stood in was quarantined"
        return Verdict("failed", "secret_leak", told, "policy")
    match ending:
        case Broke():
            return Verdict("errored", ending.reason, ending.detail, ending.kind, ending.retryable)
        case Interrupted(reason="interrupted" | "max_failures" | "parent_stopped"):
            return Verdict("cancelled", ending.reason, ending.detail)
        case Interrupted() | Stopped():
            kind: AttemptErrorKind = "policy" if ending.reason == "permission" else "agent"
            return Verdict("failed", ending.reason, ending.detail, kind)
        case Answered(text=answer):
            return _of_answer(answer, checks, patch_refused, has_patch)


def _of_answer(
    answer: str,
    checks: Sequence[CheckResult],
    patch_refused: str | None,
    has_patch: bool,  # a fact
) -> Verdict:
    if patch_refused is not None:
        return Verdict("failed", "patch", patch_refused, "policy")
    for check in checks:
        if not check.passed:
            return Verdict("failed", f"{check.kind}:{check.name}", check.reason, "task")
    if not answer.strip() and not has_patch:
        return Verdict("failed", "empty", "no answer and no change", "agent")
    return Verdict("passed")
