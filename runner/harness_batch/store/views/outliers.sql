-- Which sessions took far more than their recipe's others (more than 3 quartile ranges above)?
-- chart: times_median by item_key, measure
WITH measured AS (
    UNPIVOT (
        SELECT
            s.recipe, s.item_key, s.session_id, s.run_id, s.started_at,
            CAST(t.cost_usd AS DOUBLE) AS cost_usd,
            CAST(t.input_tokens + t.output_tokens AS DOUBLE) AS tokens,
            CAST(t.steps AS DOUBLE) AS steps,
            epoch(s.finished_at) - epoch(s.started_at) AS seconds
        FROM session AS s
        JOIN session_total AS t USING (session_id)
        WHERE s.depth = 0 AND s.attempts > 0
    )
    ON cost_usd, tokens, steps, seconds
    INTO NAME measure VALUE amount
),
usual AS (
    SELECT
        recipe,
        measure,
        quantile_cont(amount, 0.25) AS low,
        median(amount) AS middle,
        quantile_cont(amount, 0.75) AS high
    FROM measured
    GROUP BY recipe, measure
    HAVING count(*) >= 5
)
SELECT
    m.recipe, m.item_key, m.measure, m.amount,
    u.middle AS median,
    m.amount / nullif(u.middle, 0) AS times_median,
    m.session_id, m.run_id, m.started_at
FROM measured AS m
JOIN usual AS u ON u.recipe = m.recipe AND u.measure = m.measure
WHERE m.amount > u.high + 3 * (u.high - u.low) AND m.amount > u.middle
ORDER BY times_median DESC NULLS LAST, m.session_id, m.measure
