-- What each model was asked in the run, by its sessions and their children: the dearest first.
SELECT
    concat_ws('/', provider, request_model) AS model,
    count(*) AS calls,
    count(*) FILTER (error_kind IS NOT NULL OR duration_s IS NULL) AS failed,
    CAST(coalesce(sum(input_tokens), 0) AS BIGINT) AS input_tokens,
    CAST(coalesce(sum(cache_read_tokens), 0) AS BIGINT) AS cache_read_tokens,
    CAST(coalesce(sum(output_tokens), 0) AS BIGINT) AS output_tokens,
    CAST(sum(cost_usd) AS DECIMAL(18, 9)) AS cost_usd,
    quantile_cont(duration_s, 0.5) AS p50_s,
    quantile_cont(duration_s, 0.95) AS p95_s
FROM report_model_call
WHERE session_id IN (
    SELECT session_id FROM report_session WHERE run_id = $run_id
    UNION ALL
    SELECT session_id FROM report_child WHERE run_id = $run_id
)
GROUP BY ALL
ORDER BY cost_usd DESC NULLS LAST, input_tokens DESC, model
