-- The tool calls of one session, oldest first.
SELECT
    attempt_id,
    tool_call_id,
    tool,
    status,
    error,
    exit_code,
    epoch_us(started_at) AS started_at,
    duration_s,
    output_bytes
FROM report_tool_call
WHERE session_id = $session_id
ORDER BY report_tool_call.started_at, tool_call_id
