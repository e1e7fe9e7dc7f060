"""Many sessions: scheduling, stops, exit code, resume."""
