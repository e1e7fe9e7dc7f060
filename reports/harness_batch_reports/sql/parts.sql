-- The parts of one session's messages.
SELECT
    part_id,
    message_id,
    idx,
    type,
    body
FROM report_part
WHERE session_id = $session_id
ORDER BY message_id, idx, part_id
