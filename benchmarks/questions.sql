-- A history as two thousand nights of work leave it: $calls model calls, 25 a session; every
-- tenth session is a child; three models, twelve recipes, seeded by row numbers alone.
CREATE TEMP MACRO pick(x, k) AS CAST(hash(x) % k AS BIGINT);

INSERT INTO run (run_id, version, argv, started_at, finished_at, exit_code, budget_usd)
SELECT
    'run_' || lpad(r::VARCHAR, 8, '0'), '0.1.0', '["run"]',
    TIMESTAMPTZ '2026-01-01 02:00:00+00' + INTERVAL (r * 2) HOUR,
    TIMESTAMPTZ '2026-01-01 02:00:00+00' + INTERVAL (r * 2 + 1) HOUR,
    CASE WHEN r % 9 = 0 THEN 4 WHEN r % 3 = 0 THEN 1 ELSE 0 END,
    CASE WHEN r % 2 = 0 THEN 25 END
FROM range(getvariable('calls') // 500) AS t (r);

INSERT INTO session (
    session_id, run_id, parent_id, depth, item_key, item_digest, recipe, agent, model, status,
    reason, flaky, attempts, started_at, finished_at, steps, tool_calls
)
SELECT
    'ses_' || lpad(s::VARCHAR, 8, '0'), 'run_' || lpad((s // 20)::VARCHAR, 8, '0'),
    CASE WHEN s % 10 = 9 THEN 'ses_' || lpad((s - 1)::VARCHAR, 8, '0') END,
    CASE WHEN s % 10 = 9 THEN 1 ELSE 0 END,
    'recipe-' || s % 12 || '/package=' || s % 300, 'digest-' || s % 600, 'recipe-' || s % 12,
    'build', ['anthropic/sonnet', 'openai/gpt', 'mine/local'][1 + pick(s, 3)],
    CASE WHEN pick(s * 7, 10) < 7 THEN 'passed' WHEN pick(s * 7, 10) < 9 THEN 'failed'
        ELSE 'errored' END,
    CASE WHEN pick(s * 7, 10) < 7 THEN NULL WHEN pick(s * 7, 10) < 9 THEN 'check:tests'
        ELSE 'provider_unavailable' END,
    s % 50 = 0, 1 + (s % 20 = 0)::INTEGER,
    TIMESTAMPTZ '2026-01-01 02:00:00+00' + INTERVAL (s * 360) SECOND,
    TIMESTAMPTZ '2026-01-01 02:00:00+00' + INTERVAL (s * 360 + 60 + pick(s, 500)) SECOND, 25, 30
FROM range(getvariable('calls') // 25) AS t (s);

INSERT INTO attempt (attempt_id, session_id, n, status, wall_s, working_s, started_at, finished_at)
SELECT
    'att_' || session_id || '_' || n, session_id, n, status,
    60 + pick(session_id || n, 500), 50 + pick(session_id || n, 500), started_at, finished_at
FROM session, range(1, attempts + 1) AS t (n);

INSERT INTO model_call (
    model_call_id, session_id, attempt_id, message_id, purpose, provider, request_model,
    response_model, response_id, step, "try", started_at, ttft_s, duration_s, finish_reason,
    error_kind, http_status, input_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, output_tokens, reasoning_tokens, cost_usd, provider_cost_usd,
    cost_source
)
SELECT
    'mcl_' || lpad(c::VARCHAR, 10, '0'), session_id, 'att_' || session_id || '_1',
    'msg_' || lpad(c::VARCHAR, 10, '0'),
    CASE WHEN c % 25 = 24 THEN 'compaction' ELSE 'step' END,
    split_part(model, '/', 1), split_part(model, '/', 2), split_part(model, '/', 2),
    CASE WHEN NOT bad THEN 'resp_' || c END, c % 25 + 1, 1 + bad::INTEGER,
    started_at + INTERVAL (c % 25 * 10) SECOND,
    CASE WHEN NOT bad THEN 0.2 + pick(c, 900) / 1000 END, 1 + pick(c * 3, 9000) / 1000,
    CASE WHEN NOT bad THEN 'tool_calls' END, CASE WHEN bad THEN 'rate_limit' END,
    CASE WHEN bad THEN 429 ELSE 200 END,
    CASE WHEN NOT bad THEN 2000 + c % 25 * 1500 END, CASE WHEN NOT bad THEN c % 25 * 1400 END,
    CASE WHEN NOT bad THEN 1500 END, CASE WHEN NOT bad THEN 0 END,
    CASE WHEN NOT bad THEN 100 + pick(c, 400) END, CASE WHEN NOT bad THEN 50 END,
    CASE WHEN NOT bad AND model <> 'mine/local' THEN 0.003 + c % 25 * 0.0007 END,
    CASE WHEN NOT bad AND model = 'openai/gpt' THEN 0.0031 + c % 25 * 0.0007 END,
    CASE WHEN model = 'mine/local' THEN 'unpriced' ELSE 'catalog' END
FROM (
    SELECT
        c, c % 97 = 0 AS bad,
        s.session_id, s.model, s.started_at
    FROM range(getvariable('calls')) AS t (c)
    JOIN session AS s ON s.session_id = 'ses_' || lpad((c // 25)::VARCHAR, 8, '0')
);

INSERT INTO message (message_id, session_id, attempt_id, role, model, agent, finish_reason, created_at)
SELECT
    message_id, session_id, attempt_id, 'assistant', provider || '/' || request_model, 'build',
    finish_reason, started_at
FROM model_call;

INSERT INTO tool_call (
    tool_call_id, session_id, attempt_id, message_id, tool, input, status, output_bytes,
    started_at, duration_s
)
SELECT
    'tcl_' || model_call_id, session_id, attempt_id, message_id,
    ['bash', 'read', 'edit', 'grep', 'glob', 'webfetch'][1 + pick(model_call_id, 6)],
    '{"command": "pytest -q"}',
    CASE pick(model_call_id, 40) WHEN 0 THEN 'error' WHEN 1 THEN 'denied' WHEN 2 THEN 'timeout'
        ELSE 'completed' END,
    1000, started_at, pick(model_call_id, 100) / 10
FROM model_call;

INSERT INTO permission_decision (
    tool_call_id, session_id, permission, pattern, action, rule, source, decided_at, seq
)
SELECT
    tool_call_id, session_id, tool, 'pattern ' || pick(tool_call_id, 5000),
    CASE WHEN status = 'denied' THEN 'deny' ELSE 'allow' END, tool || ': *: allow', 'cli',
    started_at, row_number() OVER ()
FROM tool_call;

INSERT INTO part (part_id, message_id, session_id, idx, type, body)
SELECT
    'prt_' || message_id, message_id, session_id, 0, 'text',
    json_object('text', repeat(message_id || ' looks at the tests. ', 8))
FROM message;
