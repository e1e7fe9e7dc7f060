-- What kind of tokens does each model use: fresh, cached, written, output, reasoning?
-- chart: cache_read_tokens by provider, model
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
ORDER BY provider, model
