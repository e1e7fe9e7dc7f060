-- The child session $session_id; no row when it is an item's own session.
SELECT
    session_id,
    parent_id,
    coalesce(depth, 1) AS depth,
    item_key,
    recipe,
    coalesce(agent, '') AS agent,
    coalesce(model, '') AS model,
    status,
    reason,
    detail
FROM report_child
WHERE session_id = $session_id
