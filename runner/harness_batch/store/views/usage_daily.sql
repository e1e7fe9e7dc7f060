-- What did each day take: runs, sessions, calls, tokens, money?
-- chart: cost_usd by day
WITH part_of_day AS (
    SELECT
        CAST(started_at AT TIME ZONE 'UTC' AS DATE) AS day,
        session_id,
        count(*) AS model_calls,
        sum(input_tokens) AS input_tokens,
        sum(cache_read_tokens) AS cache_read_tokens,
        sum(output_tokens) AS output_tokens,
        sum(cost_usd) AS cost_usd,
        count(*) FILTER (unpriced) AS unpriced_calls
    FROM costed_call
    GROUP BY day, session_id
)
SELECT
    p.day,
    count(DISTINCT s.run_id) AS runs,
    count(*) AS sessions,
    CAST(sum(p.model_calls) AS BIGINT) AS model_calls,
    CAST(sum(p.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(p.cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(p.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(p.cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    CAST(sum(p.unpriced_calls) AS BIGINT) AS unpriced_calls
FROM part_of_day AS p
LEFT JOIN session AS s USING (session_id)
GROUP BY p.day
ORDER BY p.day
