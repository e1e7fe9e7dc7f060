"""The background children of one session: their states, and what the model was told of them."""

import trio
from attrs import define, evolve, field

from harness_batch.engine.board import board, results
from harness_batch.engine.log import AttemptLog, timestamp
from harness_batch.events import JobUpdated
from harness_batch.ids import new_id
from harness_batch.records import Job
from harness_batch.tools.delegates import Report


@define
class Jobs:
    """All jobs of one attempt, in the order they were started; every change is an event."""

    log: AttemptLog
    _jobs: dict[str, Job] = field(factory=dict)
    _unfed: dict[str, Report] = field(factory=dict)
    """Results that the model was not told, by job id."""
    _told: str = ""
    """The newest board that the model was shown."""
    _idle: trio.Event = field(factory=trio.Event)

    def begin(self, child_session_id: str, agent: str, description: str) -> Job:
        """A child has begun to run in the background."""
        job = Job(
            job_id=new_id("job"),
            session_id=self.log.session_id,
            child_session_id=child_session_id,
            agent=agent,
            description=description,
            state="running",
            started_at=timestamp(),
        )
        if not self.running():
            self._idle = trio.Event()
        self._keep(job)
        return job

    def end(self, job: Job, report: Report) -> None:
        """It has ended, one way or another."""
        state = "error" if report.state == "running" else report.state
        self._keep(evolve(job, state=state, finished_at=timestamp()))
        self._unfed[job.job_id] = report
        if not self.running():
            self._idle.set()

    def running(self) -> int:
        """How many have not ended."""
        return sum(job.state == "running" for job in self._jobs.values())

    def unfed(self) -> int:
        """How many have ended without the model having been told how."""
        return len(self._unfed)

    async def all_ended(self) -> None:
        """Wait until none is running."""
        if self.running():
            await self._idle.wait()

    def feed(self) -> str:
        """The results that the model was not told yet; it counts as told now."""
        ended = [(self._jobs[job_id], report) for job_id, report in self._unfed.items()]
        self._unfed.clear()
        return results(ended)

    def news(self) -> str | None:
        """The board, when it differs from the one that was shown last; it counts as shown now."""
        now = board(tuple(self._jobs.values())) if self._jobs else ""
        if now == self._told:
            return None
        self._told = now
        return now

    def _keep(self, job: Job) -> None:
        self._jobs[job.job_id] = job
        self.log.emit(JobUpdated(job))
