-- What does a passed session cost, failed ones included?
-- chart: usd_per_passed by recipe, model
SELECT
    s.recipe,
    s.model,
    count(*) AS sessions,
    count(*) FILTER (s.status = 'passed') AS passed,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    CAST(sum(t.cost_usd) AS DOUBLE) / nullif(count(*) FILTER (s.status = 'passed'), 0)
        AS usd_per_passed,
    CAST(sum(t.unpriced_calls) AS BIGINT) AS unpriced_calls
FROM session AS s
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0
GROUP BY ALL
ORDER BY usd_per_passed DESC NULLS FIRST, s.recipe, s.model
