-- The run that was asked for, else the newest. $run_id may be NULL.
SELECT
    run_id,
    version,
    argv,
    ci_provider,
    ci_url,
    "trigger",
    shard_index,
    shard_total,
    epoch_us(started_at) AS started_at,
    epoch_us(finished_at) AS finished_at,
    exit_code,
    budget_usd,
    lock_digest,
    sandbox
FROM report_run
WHERE $run_id IS NULL OR run_id = $run_id
ORDER BY report_run.started_at DESC NULLS LAST, run_id DESC
LIMIT 1
