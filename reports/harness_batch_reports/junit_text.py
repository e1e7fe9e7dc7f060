"""The words inside a JUnit case: its figures as text, and the detail of what went wrong."""

from collections.abc import Iterator

from harness_batch_reports import figures
from harness_batch_reports.hostile import excerpt, one_line, unattached
from harness_batch_reports.reasons import kind, meaning
from harness_batch_reports.records import Attempt, BatchReport, Check, Session
from harness_batch_reports.verdict import outcome, session_cost

DETAIL_LIMIT = 8_192
"""Characters of the text inside `failure`, `error` and `skipped`."""
_OUTPUT_LIMIT = 3_000
_ANSWER_LIMIT = 2_000


def detail(session: Session, report: BatchReport) -> str:
    """What a person needs who sees only the test report: reason, failing checks, denials, end."""
    blocks = list(_blocks(session, report))
    return unattached(excerpt("\n\n".join(blocks), DETAIL_LIMIT))


def _blocks(session: Session, report: BatchReport) -> Iterator[str]:
    said = one_line(session.detail or "", 1_000)
    yield one_line(meaning(session).text, 300) + (f": {said}" if said else "")
    for check in session.checks:
        if not check.passed:
            yield check_detail(check, limit=_OUTPUT_LIMIT)
    denied = [denial for denial in report.denials if denial.session_id == session.session_id]
    if denied:
        lines = (
            f"  {d.times} x {one_line(d.permission, 60)}: {one_line(d.pattern, 200)}"
            for d in denied[:10]
        )
        yield "denied:\n" + "\n".join(lines)
    if session.patch and session.patch.refused:
        yield f"patch refused: {one_line(session.patch.refused, 500)}"
    if session.answer and kind(session) != "skipped":
        yield f"answer:\n{excerpt(session.answer, _ANSWER_LIMIT)}"
    if session.attempts:
        yield f"more: harness-batch show {session.session_id}"


def check_detail(check: Check, limit: int = DETAIL_LIMIT - 600) -> str:
    """A check's reason, exit code and the end of its output."""
    head = f"{check.kind} {one_line(check.name, 100)}"
    head += f" (exit code {check.exit_code})" if check.exit_code is not None else ""
    head += f": {one_line(check.reason, 400)}" if check.reason else ""
    return unattached(head + (f"\n{excerpt(check.output, limit)}" if check.output else ""))


def attempt_detail(session: Session, attempt: Attempt) -> str:
    """Why an earlier attempt was not good, and where its own files lie."""
    said = one_line(attempt.detail or "", 1_000)
    why = one_line(meaning(attempt).text, 300) + (f": {said}" if said else "")
    folder = one_line(session.folder or "", 300)
    return unattached(f"{why}\nfiles: items/{folder}/attempt-{attempt.n}/")


def figures_text(session: Session, report: BatchReport) -> str:
    """A session's figures, a line each."""
    return "\n".join(f"{name}: {unattached(text)}" for name, text in _figures(session, report))


def _figures(session: Session, report: BatchReport) -> Iterator[tuple[str, str]]:
    why = "" if kind(session) == "passed" else f" ({meaning(session).type})"
    yield "outcome", outcome(session) + why + (" (flaky)" if session.flaky else "")
    yield "cost", f"{session_cost(session)}, {figures.count(session.model_calls, 'model call')}"
    cached = figures.share(session.cache_read_tokens, session.input_tokens)
    yield (
        "tokens",
        f"{session.input_tokens:,} in ({cached} from cache), {session.output_tokens:,} out",
    )
    yield "model", one_line(f"{session.model}, agent {session.agent}", 400)
    work = (
        figures.count(session.steps, "step"),
        figures.count(session.tool_calls, "tool call"),
        figures.count(session.denials, "denial"),
        figures.count(session.attempts, "attempt"),
        figures.duration(session.wall_s),
    )
    yield "work", ", ".join(work)
    yield "patch", _patch_text(session)
    yield "item digest", session.item_digest
    yield "session", f"{session.session_id} of {report.run.run_id}{_shard(report)}"


def _patch_text(session: Session) -> str:
    patch = session.patch
    if patch is None or patch.files == 0:
        return "none"
    text = f"{figures.count(patch.files, 'file')} +{patch.added} -{patch.removed}"
    text += f", sha256 {patch.sha256}" if patch.sha256 else ""
    text += "" if patch.applies is not False else ", does not apply"
    return text + (f", refused: {one_line(patch.refused, 200)}" if patch.refused else "")


def _shard(report: BatchReport) -> str:
    run = report.run
    return f", shard {run.shard_index}/{run.shard_total}" if run.shard_total else ""


def properties(session: Session, report: BatchReport) -> Iterator[tuple[str, str]]:
    """The same for machines: names are stable, money is exact or the word `unpriced`."""
    yield "outcome", outcome(session)
    yield "session_id", session.session_id
    yield "item_digest", session.item_digest
    yield "model", session.model
    yield "agent", session.agent
    yield "attempts", str(session.attempts)
    yield "steps", str(session.steps)
    cost = figures.decimal_text(session.cost_usd)
    yield "cost_usd", cost if cost is not None else no_cost(session.unpriced_calls)
    yield "unpriced_calls", str(session.unpriced_calls)
    yield "input_tokens", str(session.input_tokens)
    yield "cache_read_tokens", str(session.cache_read_tokens)
    yield "output_tokens", str(session.output_tokens)
    if session.patch is not None and session.patch.files:
        yield "patch_sha256", session.patch.sha256 or ""
        yield "patch_id", session.patch.patch_id or ""
    if report.run.shard_total:
        yield "shard", f"{report.run.shard_index}/{report.run.shard_total}"


def no_cost(unpriced: int) -> str:
    """What stands for a cost that is not there: nothing was billed, or nobody knows."""
    return "unpriced" if unpriced else "0"
