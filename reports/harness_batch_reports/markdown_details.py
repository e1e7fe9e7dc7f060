"""The body of the Markdown page: notices, findings, denials, changed files, reasons, answers."""

from collections.abc import Iterable, Iterator

from harness_batch_reports import figures
from harness_batch_reports.allow import Allowing, allowing, by_agent
from harness_batch_reports.answers import answer_text, language
from harness_batch_reports.findings import Finding, every_finding
from harness_batch_reports.hostile import cell, code, fenced, html_code
from harness_batch_reports.markdown_overview import change, mark, why
from harness_batch_reports.reasons import kind, meaning
from harness_batch_reports.records import Attempt, BatchReport, Check, Session
from harness_batch_reports.verdict import outcome, worst_first

_OUTPUT_LIMIT = 4_000
_ANSWER_LIMIT = 6_000
_PATHS = 20
_DENIALS = 40
_NOTICES = 20
_FINDINGS = 60


def notices(report: BatchReport) -> Iterator[str]:
    """Warnings and errors; infos are for the log."""
    told = [notice for notice in report.notices if notice.level in {"warning", "error"}]
    if not told:
        return
    lines = [f"- **{notice.level}** {code(notice.text, 400)}" for notice in told[:_NOTICES]]
    if len(told) > _NOTICES:
        lines.append(f"- … and {len(told) - _NOTICES} more")
    yield "### Notices\n\n" + "\n".join(lines)


def found(report: BatchReport) -> Iterator[str]:
    """What reviews object to, worst first."""
    every = every_finding(report)
    if not every:
        return
    rows = [
        f"| {cell(one.severity, 20)} | {cell(one.where, 160) or '-'} | {cell(one.rule, 64)}"
        f" | {_said(one)} |"
        for one in every[:_FINDINGS]
    ]
    head = "| Severity | Where | Rule | What |\n|---|---|---|---|\n"
    yield "### Findings\n\n" + head + "\n".join(rows)
    if len(every) > _FINDINGS:
        yield f"… and {figures.count(len(every) - _FINDINGS, 'more finding')}."


def _said(finding: Finding) -> str:
    mend = cell(finding.suggestion, 300)
    return cell(finding.message, 500) + (f", mend: {mend}" if mend else "")


def denied(report: BatchReport) -> Iterator[str]:
    """What was refused by which rule, and the lines that would allow it."""
    if not report.denials:
        return
    rows = [
        f"| {cell(d.permission, 40)} | {cell(d.pattern, 160)} | {d.times} | {cell(d.item_key, 100)}"
        f" | {_rule(d.rule, d.source)} |"
        for d in report.denials[:_DENIALS]
    ]
    head = "| Permission | Asked for | Times | Item | Denied by |\n|---|---|---:|---|---|\n"
    yield "### Denied\n\n" + head + "\n".join(rows)
    if len(report.denials) > _DENIALS:
        yield f"… and {len(report.denials) - _DENIALS} more."
    yield from (_lines(found) for found in allowing(report) if found.yaml)
    agents = by_agent(report.denials)
    if agents:
        names = ", ".join(code(agent, 40) for agent in agents)
        yield f"What the agent itself denies ({names}) no recipe can allow: choose another agent."


def _rule(rule: str | None, source: str | None) -> str:
    if rule is None:
        return "no rule allows it"
    return cell(rule, 120) + (f" of {cell(source, 120)}" if source else "")


def _lines(found: Allowing) -> str:
    where = code(found.file or found.recipe, 200)
    more = f" ({found.left_out} more are too long or too many)" if found.left_out else ""
    return (
        f"These lines in {where} would have allowed it; take over only what you want{more}:\n\n"
        + fenced(found.yaml, 40_000, "yaml")
    )


def changes(report: BatchReport) -> Iterator[str]:
    """Each patch with its files."""
    title = "### What changed\n\n"
    for session in worst_first(report.sessions):
        if session.patch is not None and session.patch.files:
            yield title + _changed(session)
            title = ""


def _changed(session: Session) -> str:
    patch = session.patch
    assert patch is not None
    lines = [f"- {mark(session)} {code(session.item_key, 120)}: {change(session)}"]
    if patch.refused:
        lines[0] += f": {code(patch.refused, 200)}"
    lines += [f"  - {code(path, 200)}" for path in patch.paths[:_PATHS]]
    if len(patch.paths) > _PATHS:
        lines.append(f"  - … and {len(patch.paths) - _PATHS} more")
    file = next((file for file in session.files if file.endswith(".patch")), None)
    if file is not None:
        lines.append(f"  - patch: {code(file, 300)}")
    return "\n".join(lines)


def reasons(report: BatchReport) -> Iterator[str]:
    """One folded block for each session that did not pass, worst first."""
    title = "### Reasons\n\n"
    for session in worst_first(report.sessions):
        if kind(session) in {"failure", "error"}:
            yield title + _reason(session)
            title = ""


def _reason(session: Session) -> str:
    reason = meaning(session)
    words = reason.words.replace("{}", html_code(reason.subject or "", 80))
    failed = [check for check in session.checks if not check.passed]
    # A check that failed says itself what the reason would say again.
    said = any(check.code == session.reason for check in failed)
    blocks = [] if said else [f"{why(session, 600)} ({code(reason.type, 80)})"]
    blocks += [_check(check) for check in failed]
    blocks += tried(session)
    if session.answer:
        blocks.append("The agent's last words:\n\n" + _answer(session.answer))
    facts = [
        f"{figures.count(session.steps, 'step')}",
        f"{figures.count(session.tool_calls, 'tool call')}",
        f"{figures.count(session.attempts, 'attempt')}",
        f"model {code(session.model, 100)}",
        f"session {code(session.session_id, 100)}",
    ]
    blocks.append(", ".join(facts))
    return _folded(f"{mark(session)} {html_code(session.item_key, 120)}: {words}", blocks)


def tried(session: Session) -> Iterator[str]:
    """The attempts before the last one, a line each."""
    if session.earlier:
        yield "Earlier attempts:\n\n" + "\n".join(map(_tried, session.earlier))


def _tried(attempt: Attempt) -> str:
    took = f" ({figures.duration(attempt.wall_s)})" if attempt.wall_s is not None else ""
    if attempt.status == "passed":
        return f"- attempt {attempt.n}: passed{took}"
    reason = meaning(attempt)
    words = reason.words.replace("{}", code(reason.subject or "", 80))
    said = f": {code(attempt.detail, 300)}" if attempt.detail else ""
    return f"- attempt {attempt.n}: {words}{said}{took}"


def _check(check: Check) -> str:
    exit_code = f" (exit code {check.exit_code})" if check.exit_code is not None else ""
    text = f"{check.kind.capitalize()} {code(check.name, 100)} failed{exit_code}"
    if check.reason:
        text += f": {code(check.reason, 400)}"
    return text + (f"\n\n{fenced(check.output, _OUTPUT_LIMIT)}" if check.output else "")


def answers(report: BatchReport) -> Iterator[str]:
    """What the sessions that passed answered, folded; open when there is only one."""
    title = "### Answers\n\n"
    told = [s for s in report.sessions if s.answer and s.status in {"passed", "cached"}]
    for session in told:
        head = f"{mark(session)} {html_code(session.item_key, 120)} ({outcome(session)})"
        opened = " open" if len(report.sessions) == 1 else ""
        yield title + _folded(head, [*tried(session), _answer(session.answer or "")], opened)
        title = ""


def _answer(answer: str) -> str:
    return fenced(answer_text(answer), _ANSWER_LIMIT, language(answer))


def _folded(head: str, blocks: Iterable[str], opened: str = "") -> str:
    body = "\n\n".join(blocks)
    return f"<details{opened}><summary>{head}</summary>\n\n{body}\n\n</details>"
