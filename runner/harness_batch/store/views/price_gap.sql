-- Where does our cost differ from what the provider itself says, and what has no price?
-- chart: gap_usd by provider, model
-- Where we have no price, the provider's word is the cost: nothing to compare.
WITH priced_call AS (
    SELECT
        * EXCLUDE (cost_usd),
        CASE WHEN cost_source = 'provider' THEN NULL ELSE cost_usd END AS cost_usd
    FROM costed_call
)
SELECT
    provider,
    request_model AS model,
    count(*) AS model_calls,
    count(*) FILTER (cost_usd IS NOT NULL AND provider_cost_usd IS NOT NULL) AS compared_calls,
    CAST(sum(cost_usd) FILTER (provider_cost_usd IS NOT NULL) AS DECIMAL(18,9)) AS cost_usd,
    CAST(sum(provider_cost_usd) FILTER (cost_usd IS NOT NULL) AS DECIMAL(18,9))
        AS provider_cost_usd,
    CAST(
        sum(cost_usd - provider_cost_usd) AS DECIMAL(18,9)
    ) AS gap_usd,
    CAST(sum(cost_usd - provider_cost_usd) AS DOUBLE)
        / nullif(CAST(sum(provider_cost_usd) FILTER (cost_usd IS NOT NULL) AS DOUBLE), 0)
        AS gap_share,
    count(*) FILTER (unpriced) AS unpriced_calls,
    CAST(
        coalesce(
            sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) FILTER (unpriced), 0
        ) AS BIGINT
    ) AS unpriced_tokens
FROM priced_call
GROUP BY provider, request_model
ORDER BY unpriced_tokens DESC, abs(gap_usd) DESC NULLS LAST, provider, model
