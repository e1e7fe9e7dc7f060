-- The child sessions of a run, in the order in which they were started.
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
WHERE run_id = $run_id
ORDER BY session_id
