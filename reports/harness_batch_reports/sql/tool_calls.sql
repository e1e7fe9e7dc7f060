-- The tool calls of some sessions, oldest first.
SELECT
    session_id,
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
WHERE list_contains($session_ids, session_id)
ORDER BY report_tool_call.started_at, tool_call_id
