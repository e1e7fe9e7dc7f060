"""Reports of a finished run: database in, text out. Knows the `report_*` views and nothing else."""
