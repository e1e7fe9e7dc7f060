-- What runs there are, newest first, to name them when the wrong one is asked for.
SELECT run_id
FROM report_run
ORDER BY started_at DESC NULLS LAST, run_id DESC
LIMIT 10
