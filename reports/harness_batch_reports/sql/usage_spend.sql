-- When money was spent in the run: what the calls cost that ended in each second.
SELECT
    CAST(epoch_us(date_trunc(
        'second', started_at + to_microseconds(CAST(coalesce(duration_s, 0) * 1e6 AS BIGINT))
    )) AS BIGINT) AS ended_at,
    CAST(sum(cost_usd) AS DECIMAL(18, 9)) AS cost_usd
FROM report_model_call
WHERE
    cost_usd IS NOT NULL
    AND started_at IS NOT NULL
    AND session_id IN (
        SELECT session_id FROM report_session WHERE run_id = $run_id
        UNION ALL
        SELECT session_id FROM report_child WHERE run_id = $run_id
    )
GROUP BY ALL
ORDER BY ended_at
