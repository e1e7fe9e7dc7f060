-- What the other views stand on, and what the reports read (`report_*`: a contract). What people ask
-- is in views/, a file a question.

-- Each session with every session that counts into it: itself, its children, theirs.
CREATE OR REPLACE VIEW session_tree AS
WITH RECURSIVE up AS (
    SELECT session_id, parent_id AS ancestor_id FROM session WHERE parent_id IS NOT NULL
    UNION
    SELECT up.session_id, s.parent_id
    FROM up JOIN session AS s ON s.session_id = up.ancestor_id
    WHERE s.parent_id IS NOT NULL
)
SELECT session_id AS ancestor_id, session_id FROM session
UNION ALL
SELECT ancestor_id, session_id FROM up;

-- A call whose cost nobody knows: its reply began (be it broken off) or it used tokens, without a
-- price; or it was stopped or never ended. One that the provider refused costs nothing.
CREATE OR REPLACE VIEW costed_call AS
SELECT
    *,
    cost_usd IS NULL
    AND (
        error_kind IS NULL
        OR error_kind = 'cancelled'
        OR response_id IS NOT NULL
        OR ttft_s IS NOT NULL
        OR coalesce(input_tokens, 0) + coalesce(output_tokens, 0) > 0
    ) AS unpriced
FROM model_call;

CREATE OR REPLACE VIEW unpriced_call AS
SELECT * EXCLUDE (unpriced) FROM costed_call WHERE unpriced;

CREATE OR REPLACE VIEW session_calls AS
SELECT
    session_id,
    count(*) AS model_calls,
    count(*) FILTER (unpriced) AS unpriced_calls,
    CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    sum(duration_s) AS model_s
FROM costed_call
GROUP BY session_id;

-- A session with its children.
CREATE OR REPLACE VIEW session_total AS
SELECT
    tree.ancestor_id AS session_id,
    any_value(s.run_id) AS run_id,
    count(*) - 1 AS children,
    CAST(sum(s.steps) AS BIGINT) AS steps,
    CAST(sum(s.tool_calls) AS BIGINT) AS tool_calls,
    CAST(coalesce(sum(c.model_calls), 0) AS BIGINT) AS model_calls,
    CAST(coalesce(sum(c.unpriced_calls), 0) AS BIGINT) AS unpriced_calls,
    CAST(coalesce(sum(c.input_tokens), 0) AS BIGINT) AS input_tokens,
    CAST(coalesce(sum(c.cache_read_tokens), 0) AS BIGINT) AS cache_read_tokens,
    CAST(coalesce(sum(c.output_tokens), 0) AS BIGINT) AS output_tokens,
    CAST(
        CASE WHEN sum(c.model_calls) IS NULL THEN 0 ELSE sum(c.cost_usd) END AS DECIMAL(18,9)
    ) AS cost_usd
FROM session_tree AS tree
JOIN session AS s ON s.session_id = tree.session_id
LEFT JOIN session_calls AS c ON c.session_id = tree.session_id
GROUP BY tree.ancestor_id;

CREATE OR REPLACE VIEW last_attempt AS
SELECT * FROM attempt
QUALIFY row_number() OVER (PARTITION BY session_id ORDER BY n DESC, attempt_id DESC) = 1;

-- ---- what the reports read

CREATE OR REPLACE VIEW report_run AS
SELECT
    run_id, version, argv, ci_provider, ci_url, trigger, shard_index, shard_total, started_at,
    finished_at, exit_code, budget_usd, lock_digest, sandbox
FROM run
ORDER BY run_id;

-- A session that never ended died with its runner: errored, infra.killed.
CREATE OR REPLACE VIEW report_session AS
WITH times AS (
    SELECT session_id, sum(wall_s) AS wall_s, sum(working_s) AS working_s
    FROM attempt GROUP BY session_id
),
denied AS (
    SELECT session_id, count(*) AS denials
    FROM tool_call WHERE status = 'denied' GROUP BY session_id
)
SELECT
    s.run_id, s.session_id, s.item_key, s.item_digest, s.recipe, s.recipe_file, s.folder,
    s.params, s.matrix, s.agent, s.model, s.repo, s.ref, s.base_sha,
    coalesce(s.status, 'errored') AS status,
    CASE WHEN s.status IS NULL THEN 'infra.killed' ELSE s.reason END AS reason,
    CASE
        WHEN s.status IS NULL THEN 'the runner died before the session ended' ELSE s.detail
    END AS detail,
    s.flaky, s.attempts, s.started_at, s.finished_at,
    times.wall_s, times.working_s, s.steps, s.tool_calls,
    total.input_tokens, total.cache_read_tokens, total.output_tokens, total.cost_usd,
    total.unpriced_calls, total.model_calls,
    CASE WHEN s.status IS NULL THEN 'infra' ELSE a.error_kind END AS error_kind,
    a.answer,
    coalesce(denied.denials, 0) AS denials,
    a.attempt_id, a.n AS attempt_n,
    p.files AS patch_files, p.added AS patch_added, p.removed AS patch_removed,
    p.bytes AS patch_bytes, p.sha256 AS patch_sha256, p.patch_id, p.applies AS patch_applies,
    p.refused AS patch_refused, p.paths AS patch_paths
FROM session AS s
JOIN session_total AS total USING (session_id)
LEFT JOIN times USING (session_id)
LEFT JOIN denied USING (session_id)
LEFT JOIN last_attempt AS a USING (session_id)
LEFT JOIN patch AS p ON p.attempt_id = a.attempt_id
WHERE s.depth = 0
ORDER BY s.item_key, s.session_id;

CREATE OR REPLACE VIEW report_attempt AS
SELECT
    session_id, attempt_id, n, status, reason, detail, error_kind, wall_s, started_at, finished_at
FROM attempt
ORDER BY session_id, n, attempt_id;

CREATE OR REPLACE VIEW report_check AS
SELECT
    s.run_id, s.session_id, s.item_key, c.attempt_id, c.name, c.kind, c.passed, c.exit_code,
    c.duration_s, c.reason, c.output
FROM check_result AS c
JOIN last_attempt AS a ON a.attempt_id = c.attempt_id
JOIN session AS s ON s.session_id = c.session_id
WHERE s.depth = 0
ORDER BY s.item_key, s.session_id, c.seq;

-- Children's denials stand with the session of depth 0 that they work for.
CREATE OR REPLACE VIEW report_denial AS
SELECT
    s.run_id, s.session_id, s.item_key, t.tool, d.permission, d.pattern, d.rule, d.source,
    count(*) AS times
FROM permission_decision AS d
LEFT JOIN tool_call AS t ON t.tool_call_id = d.tool_call_id
JOIN session_tree AS tree ON tree.session_id = d.session_id
JOIN session AS s ON s.session_id = tree.ancestor_id AND s.depth = 0
WHERE d.action = 'deny'
GROUP BY ALL
ORDER BY s.item_key, s.session_id, times DESC, t.tool, d.permission, d.pattern, d.rule, d.source;

CREATE OR REPLACE VIEW report_message AS
SELECT
    m.session_id, m.attempt_id, a.n AS attempt_n, m.message_id, m.role, m.model, m.agent,
    m.finish_reason, m.error, m.created_at
FROM message AS m
LEFT JOIN attempt AS a ON a.attempt_id = m.attempt_id
ORDER BY m.session_id, a.n, m.message_id;

CREATE OR REPLACE VIEW report_part AS
SELECT session_id, message_id, part_id, idx, type, body
FROM part
ORDER BY session_id, message_id, idx, part_id;

CREATE OR REPLACE VIEW report_model_call AS
SELECT
    session_id, attempt_id, step, "try", purpose, provider, request_model, started_at, ttft_s,
    duration_s, finish_reason, error_kind, error, http_status, input_tokens, cache_read_tokens,
    output_tokens, cost_usd, cost_source
FROM model_call
ORDER BY session_id, model_call_id;

CREATE OR REPLACE VIEW report_tool_call AS
SELECT
    session_id, attempt_id, tool_call_id, tool, status, error, exit_code, started_at, duration_s,
    output_bytes
FROM tool_call
ORDER BY session_id, started_at, tool_call_id;

-- Sessions that other sessions started. One that never ended died with its runner.
CREATE OR REPLACE VIEW report_child AS
SELECT
    s.run_id, s.session_id, s.parent_id, s.depth, s.item_key, s.recipe, s.agent, s.model,
    coalesce(s.status, 'errored') AS status,
    CASE WHEN s.status IS NULL THEN 'infra.killed' ELSE s.reason END AS reason,
    s.detail, s.attempts, s.steps, s.tool_calls, s.input_tokens, s.output_tokens, s.cost_usd
FROM session AS s
WHERE s.depth > 0
ORDER BY s.session_id;

CREATE OR REPLACE VIEW report_notice AS
SELECT run_id, session_id, level, text, ts FROM notice ORDER BY run_id, seq;

-- What a trace of a run is made of: every session, request and tool call of it, children's too.
CREATE OR REPLACE VIEW report_trace_session AS
SELECT
    run_id, session_id, parent_id, depth, item_key, recipe, agent, model, repo, ref, base_sha,
    coalesce(status, 'errored') AS status,
    CASE WHEN status IS NULL THEN 'infra.killed' ELSE reason END AS reason,
    detail, attempts, started_at, finished_at, steps, tool_calls, input_tokens, output_tokens,
    cost_usd
FROM session
WHERE started_at IS NOT NULL
ORDER BY run_id, session_id;

CREATE OR REPLACE VIEW report_trace_call AS
SELECT
    s.run_id, m.session_id, m.model_call_id, m.purpose, m.provider, m.request_model,
    m.response_model, m.response_id, m.step, m."try", m.started_at, m.ttft_s, m.duration_s,
    m.finish_reason, m.error_kind, m.error, m.http_status, m.input_tokens, m.cache_read_tokens,
    m.cache_write_5m_tokens, m.cache_write_1h_tokens, m.output_tokens, m.reasoning_tokens,
    m.cost_usd
FROM model_call AS m
JOIN session AS s USING (session_id)
WHERE m.started_at IS NOT NULL
ORDER BY s.run_id, m.model_call_id;

CREATE OR REPLACE VIEW report_trace_tool AS
WITH decided AS (
    SELECT
        tool_call_id,
        CASE WHEN bool_or(action = 'deny') THEN 'deny' ELSE 'allow' END AS decision,
        arg_max(rule, (action = 'deny', seq)) AS rule
    FROM permission_decision
    GROUP BY tool_call_id
)
SELECT
    s.run_id, t.session_id, t.tool_call_id, t.tool, t.server, t.status, t.error, t.exit_code,
    t.started_at, t.duration_s, d.decision, d.rule
FROM tool_call AS t
JOIN session AS s USING (session_id)
LEFT JOIN decided AS d USING (tool_call_id)
WHERE t.started_at IS NOT NULL
ORDER BY s.run_id, t.tool_call_id;
