-- Every request of run $run_id.
SELECT
    session_id,
    model_call_id,
    coalesce(purpose, 'step') AS purpose,
    coalesce(provider, '') AS provider,
    coalesce(request_model, '') AS request_model,
    response_model,
    response_id,
    coalesce("try", 1) AS try_,
    epoch_us(started_at) AS started_at,
    ttft_s,
    duration_s,
    finish_reason,
    error_kind,
    error,
    http_status,
    input_tokens,
    cache_read_tokens,
    coalesce(cache_write_5m_tokens, 0) + coalesce(cache_write_1h_tokens, 0) AS cache_write_tokens,
    output_tokens,
    reasoning_tokens,
    cost_usd
FROM report_trace_call
WHERE run_id = $run_id
ORDER BY model_call_id
