-- How much went into sessions that did not pass, and why did they not?
-- chart: cost_usd by recipe, reason
SELECT
    s.recipe,
    coalesce(s.status, 'errored') AS status,
    CASE WHEN s.status IS NULL THEN 'infra.killed' ELSE s.reason END AS reason,
    count(*) AS sessions,
    CAST(sum(t.input_tokens + t.output_tokens) AS BIGINT) AS tokens,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    CAST(sum(t.unpriced_calls) AS BIGINT) AS unpriced_calls
FROM session AS s
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0 AND coalesce(s.status, 'errored') IN ('failed', 'errored', 'cancelled')
GROUP BY ALL
ORDER BY cost_usd DESC NULLS LAST, tokens DESC, s.recipe, status, reason
