"""GitHub around a run: what started a job, what the job says back, comments and pull requests."""
