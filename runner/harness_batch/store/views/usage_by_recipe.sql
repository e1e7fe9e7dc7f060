-- What did each recipe take, and how did its sessions end?
-- chart: cost_usd by recipe
SELECT
    s.recipe,
    count(*) AS sessions,
    count(*) FILTER (s.status = 'passed') AS passed,
    count(*) FILTER (s.status = 'failed') AS failed,
    count(*) FILTER (coalesce(s.status, 'errored') = 'errored') AS errored,
    CAST(sum(t.model_calls) AS BIGINT) AS model_calls,
    CAST(sum(t.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(t.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    CAST(sum(t.unpriced_calls) AS BIGINT) AS unpriced_calls
FROM session AS s
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0
GROUP BY s.recipe
ORDER BY cost_usd DESC NULLS LAST, s.recipe
