-- What a person should know of the run and its sessions.
SELECT
    session_id,
    "level",
    text,
    epoch_us(ts) AS ts
FROM report_notice
WHERE run_id = $run_id
ORDER BY report_notice.ts, session_id, text
