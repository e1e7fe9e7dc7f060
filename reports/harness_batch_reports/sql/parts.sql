-- The parts of some sessions' messages.
SELECT
    session_id,
    part_id,
    message_id,
    idx,
    type,
    body
FROM report_part
WHERE list_contains($session_ids, session_id)
ORDER BY message_id, idx, part_id
