-- On which days did providers limit the rate or were overloaded?
-- chart: rate_limited by day, model
SELECT
    provider,
    request_model AS model,
    CAST(started_at AT TIME ZONE 'UTC' AS DATE) AS day,
    count(*) AS model_calls,
    count(*) FILTER (error_kind = 'rate_limit') AS rate_limited,
    count(*) FILTER (error_kind = 'unavailable') AS unavailable,
    max("try") AS worst_try
FROM model_call
GROUP BY ALL
HAVING rate_limited + unavailable > 0
ORDER BY day DESC, rate_limited DESC, provider, model
