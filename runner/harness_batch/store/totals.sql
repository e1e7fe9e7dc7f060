-- The columns of `session` that are sums of its own rows: right whatever the journal's end was.
-- A step is a model reply that stands: one that broke off before a tool ran has no finish reason,
-- and a summary of the conversation is none.
-- Cost is the sum of what is priced, NULL when no call is, 0 when there was no call.
UPDATE session SET
    started_at = coalesce(session.started_at, total.started_at),
    attempts = total.attempts,
    steps = total.steps,
    tool_calls = total.tool_calls,
    input_tokens = total.input_tokens,
    output_tokens = total.output_tokens,
    cost_usd = total.cost_usd
FROM (
    SELECT
        s.session_id,
        a.started_at,
        coalesce(a.attempts, 0) AS attempts,
        coalesce(r.steps, 0) AS steps,
        coalesce(t.tool_calls, 0) AS tool_calls,
        coalesce(m.input_tokens, 0) AS input_tokens,
        coalesce(m.output_tokens, 0) AS output_tokens,
        CASE WHEN m.session_id IS NULL THEN 0 ELSE m.cost_usd END AS cost_usd
    FROM session AS s
    LEFT JOIN (
        SELECT session_id, count(*) AS attempts, min(started_at) AS started_at
        FROM attempt
        GROUP BY session_id
    ) AS a USING (session_id)
    LEFT JOIN (
        SELECT session_id, count(*) AS tool_calls FROM tool_call GROUP BY session_id
    ) AS t USING (session_id)
    LEFT JOIN (
        SELECT session_id, count(*) AS steps
        FROM message
        WHERE
            role = 'assistant'
            AND finish_reason IS NOT NULL
            AND message_id NOT IN (
                SELECT message_id
                FROM model_call
                WHERE purpose <> 'step' AND message_id IS NOT NULL
            )
        GROUP BY session_id
    ) AS r USING (session_id)
    LEFT JOIN (
        SELECT
            session_id,
            sum(input_tokens) AS input_tokens,
            sum(output_tokens) AS output_tokens,
            sum(cost_usd) AS cost_usd
        FROM model_call
        GROUP BY session_id
    ) AS m USING (session_id)
) AS total
WHERE session.session_id = total.session_id;
