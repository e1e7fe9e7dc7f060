-- What people ask most, and what the reports read (`report_*`: their columns are a contract).

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
CREATE OR REPLACE VIEW unpriced_call AS
SELECT *
FROM model_call
WHERE
    cost_usd IS NULL
    AND (
        error_kind IS NULL
        OR error_kind = 'cancelled'
        OR response_id IS NOT NULL
        OR ttft_s IS NOT NULL
        OR coalesce(input_tokens, 0) + coalesce(output_tokens, 0) > 0
    );

CREATE OR REPLACE VIEW session_calls AS
SELECT
    session_id,
    count(*) AS model_calls,
    count(*) FILTER (
        model_call_id IN (SELECT model_call_id FROM unpriced_call)
    ) AS unpriced_calls,
    CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    sum(duration_s) AS model_s
FROM model_call
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

-- ---- what people ask

CREATE OR REPLACE VIEW usage_daily AS
SELECT
    CAST(m.started_at AT TIME ZONE 'UTC' AS DATE) AS day,
    count(DISTINCT s.run_id) AS runs,
    count(DISTINCT m.session_id) AS sessions,
    count(*) AS model_calls,
    CAST(sum(m.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(m.cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(m.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(m.cost_usd) AS DECIMAL(18,9)) AS cost_usd
FROM model_call AS m
LEFT JOIN session AS s USING (session_id)
GROUP BY day
ORDER BY day;

CREATE OR REPLACE VIEW usage_by_model AS
SELECT
    provider,
    request_model AS model,
    count(*) AS model_calls,
    count(error_kind) AS errors,
    CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    count(*) FILTER (
        model_call_id IN (SELECT model_call_id FROM unpriced_call)
    ) AS unpriced_calls
FROM model_call
GROUP BY ALL
ORDER BY cost_usd DESC NULLS LAST, provider, model;

CREATE OR REPLACE VIEW usage_by_recipe AS
SELECT
    s.recipe,
    count(*) AS sessions,
    count(*) FILTER (s.status = 'passed') AS passed,
    count(*) FILTER (s.status = 'failed') AS failed,
    count(*) FILTER (s.status = 'errored') AS errored,
    CAST(sum(t.model_calls) AS BIGINT) AS model_calls,
    CAST(sum(t.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(t.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    CAST(sum(t.unpriced_calls) AS BIGINT) AS unpriced_calls
FROM session AS s
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0
GROUP BY s.recipe
ORDER BY cost_usd DESC NULLS LAST, s.recipe;

CREATE OR REPLACE VIEW token_mix AS
SELECT
    provider,
    request_model AS model,
    CAST(sum(
        input_tokens - coalesce(cache_read_tokens, 0) - coalesce(cache_write_5m_tokens, 0)
        - coalesce(cache_write_1h_tokens, 0)
    ) AS BIGINT) AS fresh_input_tokens,
    CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(cache_write_5m_tokens) AS BIGINT) AS cache_write_5m_tokens,
    CAST(sum(cache_write_1h_tokens) AS BIGINT) AS cache_write_1h_tokens,
    CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(reasoning_tokens) AS BIGINT) AS reasoning_tokens
FROM model_call
GROUP BY ALL
ORDER BY provider, model;

CREATE OR REPLACE VIEW cache_hit_rate AS
SELECT
    s.recipe,
    m.provider,
    m.request_model AS model,
    CAST(sum(m.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(m.cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    sum(m.cache_read_tokens) / nullif(sum(m.input_tokens), 0) AS hit_rate
FROM model_call AS m
LEFT JOIN session AS s USING (session_id)
GROUP BY ALL
ORDER BY s.recipe, m.provider, model;

CREATE OR REPLACE VIEW cost_per_passed AS
SELECT
    s.recipe,
    s.model,
    count(*) AS sessions,
    count(*) FILTER (s.status = 'passed') AS passed,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    CAST(sum(t.cost_usd) AS DOUBLE) / nullif(count(*) FILTER (s.status = 'passed'), 0)
        AS usd_per_passed
FROM session AS s
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0
GROUP BY ALL
ORDER BY usd_per_passed DESC NULLS FIRST, s.recipe, s.model;

CREATE OR REPLACE VIEW wasted_spend AS
SELECT
    s.recipe, s.status, s.reason,
    count(*) AS sessions,
    CAST(sum(t.input_tokens + t.output_tokens) AS BIGINT) AS tokens,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd
FROM report_session AS s
JOIN session_total AS t USING (session_id)
WHERE s.status IN ('failed', 'errored', 'cancelled')
GROUP BY ALL
ORDER BY cost_usd DESC NULLS LAST, tokens DESC, s.recipe, s.status, s.reason;

CREATE OR REPLACE VIEW tool_errors AS
SELECT
    tool,
    count(*) AS calls,
    count(*) FILTER (status = 'error') AS errors,
    count(*) FILTER (status = 'denied') AS denied,
    count(*) FILTER (status = 'timeout') AS timeouts,
    count(*) FILTER (status = 'interrupted' OR status IS NULL) AS interrupted,
    count(*) FILTER (status IS DISTINCT FROM 'completed') / count(*) AS error_rate
FROM tool_call
GROUP BY tool
ORDER BY error_rate DESC, tool;

CREATE OR REPLACE VIEW denials AS
SELECT
    permission, pattern, rule, source,
    count(*) AS times,
    count(DISTINCT session_id) AS sessions
FROM permission_decision
WHERE action = 'deny'
GROUP BY ALL
ORDER BY times DESC, permission, pattern, rule, source;

CREATE OR REPLACE VIEW latency AS
SELECT
    provider,
    request_model AS model,
    count(*) AS model_calls,
    quantile_cont(ttft_s, 0.5) AS ttft_p50_s,
    quantile_cont(ttft_s, 0.95) AS ttft_p95_s,
    quantile_cont(duration_s, 0.5) AS duration_p50_s,
    quantile_cont(duration_s, 0.95) AS duration_p95_s,
    sum(output_tokens) / nullif(sum(duration_s), 0) AS output_tokens_per_s
FROM model_call
WHERE duration_s IS NOT NULL AND error_kind IS NULL
GROUP BY ALL
ORDER BY provider, model;

CREATE OR REPLACE VIEW session_time AS
WITH tools AS (
    SELECT session_id, sum(duration_s) AS tool_s FROM tool_call GROUP BY session_id
)
SELECT
    s.recipe,
    count(*) AS sessions,
    quantile_cont(s.wall_s, 0.5) AS wall_p50_s,
    quantile_cont(s.wall_s, 0.95) AS wall_p95_s,
    avg(s.working_s) AS working_avg_s,
    avg(coalesce(calls.model_s, 0)) AS model_avg_s,
    avg(coalesce(tools.tool_s, 0)) AS tool_avg_s
FROM report_session AS s
LEFT JOIN session_calls AS calls USING (session_id)
LEFT JOIN tools USING (session_id)
WHERE s.wall_s IS NOT NULL
GROUP BY s.recipe
ORDER BY wall_p95_s DESC, s.recipe;

CREATE OR REPLACE VIEW trend AS
SELECT
    s.recipe,
    CAST(s.started_at AT TIME ZONE 'UTC' AS DATE) AS day,
    count(*) AS sessions,
    count(*) FILTER (s.status = 'passed') / count(*) AS pass_rate,
    avg(t.steps) AS steps_avg,
    avg(t.input_tokens + t.output_tokens) AS tokens_avg,
    CAST(sum(t.cost_usd) AS DECIMAL(18,9)) AS cost_usd
FROM session AS s
JOIN session_total AS t USING (session_id)
WHERE s.depth = 0 AND s.started_at IS NOT NULL
GROUP BY ALL
ORDER BY s.recipe, day;

-- Calls are of one model, limits of the whole provider. A provider that only lowered its quotas has
-- no calls here, and no model.
CREATE OR REPLACE VIEW rate_limits AS
WITH calls AS (
    SELECT
        provider,
        request_model AS model,
        CAST(started_at AT TIME ZONE 'UTC' AS DATE) AS day,
        count(*) AS model_calls,
        count(*) FILTER (error_kind = 'rate_limit') AS rate_limited,
        count(*) FILTER (error_kind = 'unavailable') AS unavailable,
        max("try") AS worst_try
    FROM model_call
    GROUP BY ALL
    HAVING rate_limited + unavailable > 0
),
limits AS (
    SELECT
        provider,
        CAST(changed_at AT TIME ZONE 'UTC' AS DATE) AS day,
        count(*) AS limit_changes,
        min(requests) AS least_requests,
        count(cool_down_s) AS cool_downs,
        max(cool_down_s) AS longest_cool_down_s,
        min(share_left) AS least_share_left,
        bool_or(requests = 0) AS closed
    FROM provider_limit
    GROUP BY ALL
)
SELECT
    provider, model, day,
    coalesce(model_calls, 0) AS model_calls,
    coalesce(rate_limited, 0) AS rate_limited,
    coalesce(unavailable, 0) AS unavailable,
    worst_try,
    coalesce(limit_changes, 0) AS limit_changes,
    least_requests, cool_downs, longest_cool_down_s, least_share_left,
    coalesce(closed, false) AS closed
FROM calls FULL JOIN limits USING (provider, day)
ORDER BY day DESC, rate_limited DESC, provider, model;

-- The same item with the same inputs that came out differently, or passed only after failing.
CREATE OR REPLACE VIEW flaky_items AS
SELECT
    item_key, item_digest,
    count(*) AS sessions,
    count(*) FILTER (status = 'passed') AS passed,
    count(*) FILTER (status = 'failed') AS failed,
    count(*) FILTER (flaky) AS flaky,
    max(finished_at) AS last_at
FROM session
WHERE depth = 0 AND status IN ('passed', 'failed')
GROUP BY ALL
HAVING flaky > 0 OR (passed > 0 AND failed > 0)
ORDER BY failed DESC, item_key;
