-- The messages of some sessions, oldest first.
SELECT
    session_id,
    message_id,
    attempt_id,
    coalesce(attempt_n, 1) AS attempt_n,
    role,
    model,
    agent,
    finish_reason,
    error,
    epoch_us(created_at) AS created_at
FROM report_message
WHERE list_contains($session_ids, session_id)
ORDER BY coalesce(attempt_n, 1), report_message.created_at, message_id
