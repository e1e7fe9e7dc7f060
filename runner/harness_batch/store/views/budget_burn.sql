-- How much of its budget (--max-cost) did each run use, and how fast?
-- chart: used by run_id
WITH spent AS (
    SELECT
        s.run_id,
        CAST(coalesce(sum(c.cost_usd), 0) AS DECIMAL(18,9)) AS cost_usd,
        CAST(coalesce(sum(c.unpriced_calls), 0) AS BIGINT) AS unpriced_calls
    FROM session AS s
    LEFT JOIN session_calls AS c USING (session_id)
    GROUP BY s.run_id
)
SELECT
    r.run_id,
    r.started_at,
    r.budget_usd,
    coalesce(spent.cost_usd, 0) AS cost_usd,
    CAST(coalesce(spent.cost_usd, 0) AS DOUBLE) / nullif(CAST(r.budget_usd AS DOUBLE), 0) AS used,
    CAST(coalesce(spent.cost_usd, 0) AS DOUBLE) * 3600
        / nullif(epoch(r.finished_at) - epoch(r.started_at), 0) AS usd_per_hour,
    r.exit_code = 4 AS stopped,
    coalesce(spent.unpriced_calls, 0) AS unpriced_calls
FROM run AS r
LEFT JOIN spent USING (run_id)
WHERE r.budget_usd IS NOT NULL
ORDER BY r.started_at, r.run_id
