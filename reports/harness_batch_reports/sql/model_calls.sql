-- The requests of some sessions, oldest first.
SELECT
    session_id,
    attempt_id,
    coalesce(step, 0) AS step,
    coalesce("try", 1) AS try_,
    purpose,
    provider,
    request_model,
    epoch_us(started_at) AS started_at,
    ttft_s,
    duration_s,
    finish_reason,
    error_kind,
    error,
    http_status,
    input_tokens,
    cache_read_tokens,
    output_tokens,
    cost_usd,
    coalesce(cost_source, 'unpriced') AS cost_source
FROM report_model_call
WHERE list_contains($session_ids, session_id)
ORDER BY report_model_call.started_at, step, "try"
