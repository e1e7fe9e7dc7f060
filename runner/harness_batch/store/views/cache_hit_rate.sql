-- How much of the input came from the provider's cache?
-- chart: hit_rate by recipe, model
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
ORDER BY s.recipe, m.provider, model
