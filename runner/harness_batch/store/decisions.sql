-- Every decision of the rules with its call, and the session of the plan it was made for.
SELECT
    d.tool_call_id,
    root.run_id,
    root.session_id,
    root.recipe,
    root.item_key,
    t.tool,
    d.permission,
    d.pattern,
    d.action,
    d.rule,
    d.source
FROM permission_decision AS d
JOIN session_tree AS tree ON tree.session_id = d.session_id
JOIN session AS root ON root.session_id = tree.ancestor_id AND root.depth = 0
LEFT JOIN tool_call AS t ON t.tool_call_id = d.tool_call_id
ORDER BY root.run_id, root.item_key, d.seq
