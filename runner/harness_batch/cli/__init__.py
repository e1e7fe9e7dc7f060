"""The command line: one small file per command; parses, calls app, maps errors to exit codes."""
