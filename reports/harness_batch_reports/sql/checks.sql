-- Checks and expectations of the last attempts, in the order in which they ran.
SELECT
    session_id,
    name,
    kind,
    coalesce(passed, false) AS passed,
    exit_code,
    coalesce(duration_s, 0) AS duration_s,
    reason,
    output
FROM report_check
WHERE run_id = $run_id OR session_id = $session_id
