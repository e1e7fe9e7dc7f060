"""Running programs for the agent so that nothing survives or leaks."""
