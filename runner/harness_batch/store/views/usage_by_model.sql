-- What did each model take: calls, errors, tokens, money?
-- chart: cost_usd by provider, model
SELECT
    provider,
    request_model AS model,
    count(*) AS model_calls,
    count(error_kind) AS errors,
    CAST(sum(input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(cost_usd) AS DECIMAL(18,9)) AS cost_usd,
    count(*) FILTER (unpriced) AS unpriced_calls
FROM costed_call
GROUP BY ALL
ORDER BY cost_usd DESC NULLS LAST, provider, model
