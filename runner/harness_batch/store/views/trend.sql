-- How do pass rate, steps, tokens and cost of each recipe move from day to day?
-- chart: pass_rate by recipe, day
SELECT
    s.recipe,
    CAST(s.started_at AT TIME ZONE 'UTC' AS DATE) AS day,
    count(*) AS sessions,
    count(*) FILTER (s.status = 'passed') / count(*) AS pass_rate,
    avg(t.steps) AS steps_avg,
    avg(t.input_tokens + t.output_tokens) AS tokens_avg,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd
FROM session AS s
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0 AND s.started_at IS NOT NULL
GROUP BY ALL
ORDER BY s.recipe, day
