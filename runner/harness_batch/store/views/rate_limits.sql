-- On which days did providers limit the rate or were overloaded?
-- chart: rate_limited by day, model
-- Calls are of one model, limits of the whole provider; one whose quotas only ran low has no model.
WITH calls AS (
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
),
limits AS (
    SELECT
        provider,
        CAST(changed_at AT TIME ZONE 'UTC' AS DATE) AS day,
        count(*) AS limit_changes,
        min(requests) AS least_requests,
        count(cool_down_s) AS cool_downs,
        max(cool_down_s) AS longest_cool_down_s,
        min(share_left) AS least_share_left,
        bool_or(requests = 0) AS closed
    FROM provider_limit
    GROUP BY ALL
)
SELECT
    provider, model, day,
    coalesce(model_calls, 0) AS model_calls,
    coalesce(rate_limited, 0) AS rate_limited,
    coalesce(unavailable, 0) AS unavailable,
    worst_try,
    coalesce(limit_changes, 0) AS limit_changes,
    least_requests, cool_downs, longest_cool_down_s, least_share_left,
    coalesce(closed, false) AS closed
FROM calls FULL JOIN limits USING (provider, day)
ORDER BY day DESC, rate_limited DESC, provider, model
