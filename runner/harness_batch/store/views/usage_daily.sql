-- What did each day take: runs, sessions, calls, tokens, money?
-- chart: cost_usd by day
SELECT
    CAST(m.started_at AT TIME ZONE 'UTC' AS DATE) AS day,
    count(DISTINCT s.run_id) AS runs,
    count(DISTINCT m.session_id) AS sessions,
    count(*) AS model_calls,
    CAST(sum(m.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(m.cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(m.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(m.cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    count(*) FILTER (m.unpriced) AS unpriced_calls
FROM costed_call AS m
LEFT JOIN session AS s USING (session_id)
GROUP BY day
ORDER BY day
