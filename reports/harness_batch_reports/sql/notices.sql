-- What a person should know of the run and its sessions, in the view's order: as it was said.
SELECT
    session_id,
    "level",
    text,
    epoch_us(ts) AS ts
FROM report_notice
WHERE run_id = $run_id
