-- How do models do on the same items: pass rate, steps, tokens, cost, time?
-- chart: pass_rate by recipe, model
WITH shared AS (
    SELECT item_key
    FROM session
    WHERE depth = 0 AND status IN ('passed', 'failed', 'errored')
    GROUP BY item_key
    HAVING count(DISTINCT model) > 1
)
SELECT
    s.recipe, s.model,
    count(DISTINCT s.item_key) AS items,
    count(*) AS sessions,
    count(*) FILTER (s.status = 'passed') AS passed,
    count(*) FILTER (s.status = 'passed') / count(*) AS pass_rate,
    avg(t.steps) AS steps_avg,
    avg(t.input_tokens + t.output_tokens) AS tokens_avg,
    avg(CAST(t.cost_usd AS DOUBLE)) AS usd_avg,
    CAST(sum(t.cost_usd) AS DOUBLE) / nullif(count(*) FILTER (s.status = 'passed'), 0)
        AS usd_per_passed,
    quantile_cont(epoch(s.finished_at) - epoch(s.started_at), 0.5) AS seconds_p50,
    CAST(sum(t.unpriced_calls) AS BIGINT) AS unpriced_calls
FROM session AS s
JOIN shared USING (item_key)
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0 AND s.status IN ('passed', 'failed', 'errored')
GROUP BY s.recipe, s.model
ORDER BY s.recipe, pass_rate DESC, usd_per_passed NULLS LAST, s.model
