-- How long do models take to the first token and to the end?
-- chart: duration_p50_s by provider, model
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
ORDER BY provider, model
