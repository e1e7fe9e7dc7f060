-- Where does the time of sessions go: the model, the tools?
-- chart: wall_p95_s by recipe
WITH tools AS (
    SELECT session_id, sum(duration_s) AS tool_s FROM tool_call GROUP BY session_id
),
times AS (
    SELECT session_id, sum(wall_s) AS wall_s, sum(working_s) AS working_s
    FROM attempt
    GROUP BY session_id
)
SELECT
    s.recipe,
    count(*) AS sessions,
    quantile_cont(times.wall_s, 0.5) AS wall_p50_s,
    quantile_cont(times.wall_s, 0.95) AS wall_p95_s,
    avg(times.working_s) AS working_avg_s,
    avg(coalesce(calls.model_s, 0)) AS model_avg_s,
    avg(coalesce(tools.tool_s, 0)) AS tool_avg_s
FROM session AS s
JOIN times USING (session_id)
LEFT JOIN session_calls AS calls USING (session_id)
LEFT JOIN tools USING (session_id)
WHERE s.depth = 0 AND times.wall_s IS NOT NULL
GROUP BY s.recipe
ORDER BY wall_p95_s DESC, s.recipe
