"""Many sessions: scheduling, concurrency, resume."""
