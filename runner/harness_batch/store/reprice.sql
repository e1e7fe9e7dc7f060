-- What the calls would have cost at other rates, beside what was recorded, for each model.
-- `today_rate` has a row for each model and tier: rates in US dollars per million tokens, NULL where
-- unknown. Tokens that were only counted in a reply that broke off have no cost here either.
WITH counted AS (
    SELECT
        *,
        finish_reason IS NOT NULL AND input_tokens IS NOT NULL AS told,
        greatest(
            0,
            coalesce(input_tokens, 0) - coalesce(cache_read_tokens, 0)
            - coalesce(cache_write_5m_tokens, 0) - coalesce(cache_write_1h_tokens, 0)
        ) AS fresh_tokens
    FROM costed_call
),
rated AS (
    SELECT
        c.*,
        r.version AS today_version,
        CASE
            WHEN NOT c.told THEN NULL
            -- Rounded call by call, as recorded costs are.
            ELSE CAST(
                CAST(
                    part(c.fresh_tokens, r.input)
                    + part(c.cache_read_tokens, r.cache_read)
                    + part(c.cache_write_5m_tokens, r.cache_write)
                    + part(c.cache_write_1h_tokens, r.cache_write_1h)
                    + part(c.output_tokens, r.output)
                    AS DOUBLE
                ) / 1e6
                AS DECIMAL(18,9)
            )
        END AS today_usd
    FROM counted AS c
    LEFT JOIN today_rate AS r
        ON
            r.provider = c.provider
            AND r.model = c.request_model
            AND coalesce(c.input_tokens, 0) >= r.from_tokens
            AND coalesce(c.input_tokens, 0) < r.to_tokens
)
SELECT
    provider,
    request_model AS model,
    count(*) AS model_calls,
    CAST(sum(cost_usd) AS DECIMAL(18,9)) AS recorded_usd,
    CAST(sum(today_usd) AS DECIMAL(18,9)) AS today_usd,
    CAST(sum(today_usd - cost_usd) AS DECIMAL(18,9)) AS difference_usd,
    CAST(sum(today_usd - cost_usd) AS DOUBLE)
        / nullif(CAST(sum(cost_usd) FILTER (today_usd IS NOT NULL) AS DOUBLE), 0)
        AS difference_share,
    count(*) FILTER (unpriced) AS recorded_unpriced_calls,
    count(*) FILTER (today_usd IS NULL AND (told OR unpriced)) AS today_unpriced_calls,
    list_aggregate(
        list_sort(
            list(DISTINCT coalesce(price_version, cost_source)) FILTER (cost_usd IS NOT NULL)
        ),
        'string_agg', ', '
    ) AS recorded_prices,
    any_value(today_version) AS today_prices
FROM rated
GROUP BY provider, request_model
ORDER BY abs(difference_usd) DESC NULLS LAST, provider, model
