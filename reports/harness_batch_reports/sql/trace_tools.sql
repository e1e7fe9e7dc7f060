-- Every tool call of run $run_id, with what the rules said to it.
SELECT
    session_id,
    tool_call_id,
    tool,
    status,
    error,
    epoch_us(started_at) AS started_at,
    duration_s,
    decision,
    rule
FROM report_trace_tool
WHERE run_id = $run_id
ORDER BY tool_call_id
