-- The attempts of one run's sessions, or of the one session: $run_id or $session_id is NULL.
SELECT
    session_id,
    attempt_id,
    coalesce(n, 1) AS n,
    status,
    reason,
    detail,
    error_kind,
    wall_s,
    epoch_us(started_at) AS started_at,
    epoch_us(finished_at) AS finished_at
FROM report_attempt
WHERE
    session_id = $session_id
    OR session_id IN (SELECT session_id FROM report_session WHERE run_id = $run_id)
ORDER BY session_id, n, attempt_id
