-- What the rules refused, the most frequent first.
SELECT
    session_id,
    item_key,
    tool,
    permission,
    pattern,
    rule,
    source,
    times
FROM report_denial
WHERE run_id = $run_id
ORDER BY times DESC, item_key, permission, pattern, session_id
