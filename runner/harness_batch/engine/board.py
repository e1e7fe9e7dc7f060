"""What the model is told of its background jobs: the board with their states, and their results.

Pure, and without clocks: what is told once stays in the prefix of all later requests.
"""

from collections.abc import Sequence

from harness_batch.records import Job
from harness_batch.tools.delegates import Report

GO_ON = (
    "Your background jobs have ended since you were last asked; these are their results, told once."
    " Take them into account. If you had finished already, give your final answer again, whole."
)


def board(jobs: Sequence[Job]) -> str:
    """One line a job, in the order they were started."""
    lines = (f"- {job.child_session_id} {_said(job)}: {job.state}" for job in jobs)
    return "\n".join(("<background-jobs>", *lines, "</background-jobs>"))


def results(ended: Sequence[tuple[Job, Report]]) -> str:
    """The message that feeds results in."""
    return "\n\n".join((GO_ON, *(_result(job, report) for job, report in ended)))


def _result(job: Job, report: Report) -> str:
    # The answer could hold the closing tag; broken up it cannot end the block early.
    text = report.as_text().replace("</job-result", "<\\/job-result")
    return f"<job-result>\n{_said(job)}\n{text}\n</job-result>"


def _said(job: Job) -> str:
    return f"{job.agent}, {' '.join(job.description.split())!r}"
