-- Every session of run $run_id that began, parents and children.
SELECT
    session_id,
    parent_id,
    item_key,
    recipe,
    coalesce(agent, '') AS agent,
    coalesce(model, '') AS model,
    repo,
    ref,
    base_sha,
    status,
    reason,
    detail,
    coalesce(attempts, 0) AS attempts,
    epoch_us(started_at) AS started_at,
    epoch_us(finished_at) AS finished_at,
    coalesce(input_tokens, 0) AS input_tokens,
    coalesce(output_tokens, 0) AS output_tokens,
    cost_usd
FROM report_trace_session
WHERE run_id = $run_id
ORDER BY session_id
