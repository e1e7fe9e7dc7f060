"""Journal, database and history: what happened, written down once."""
