-- Which tools were called in the run and how that went, the most used first.
SELECT
    tool,
    count(*) AS calls,
    count(*) FILTER (status IN ('error', 'timeout')) AS failed,
    count(*) FILTER (status = 'denied') AS denied,
    CAST(coalesce(sum(duration_s), 0) AS DOUBLE) AS seconds,
    CAST(coalesce(sum(output_bytes), 0) AS BIGINT) AS output_bytes
FROM report_tool_call
WHERE session_id IN (
    SELECT session_id FROM report_session WHERE run_id = $run_id
    UNION ALL
    SELECT session_id FROM report_child WHERE run_id = $run_id
)
GROUP BY ALL
ORDER BY calls DESC, tool
