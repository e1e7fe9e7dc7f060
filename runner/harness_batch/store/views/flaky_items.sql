-- Which items came out differently with the same inputs, or passed only after failing?
-- chart: failed by item_key
SELECT
    item_key, item_digest,
    count(*) AS sessions,
    count(*) FILTER (status = 'passed') AS passed,
    count(*) FILTER (status = 'failed') AS failed,
    count(*) FILTER (flaky) AS flaky,
    max(finished_at) AS last_at
FROM session
WHERE depth = 0 AND status IN ('passed', 'failed')
GROUP BY ALL
HAVING flaky > 0 OR (passed > 0 AND failed > 0)
ORDER BY failed DESC, item_key
