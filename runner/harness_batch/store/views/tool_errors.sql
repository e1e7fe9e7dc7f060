-- Which tools fail, how often and how?
-- chart: error_rate by tool
SELECT
    tool,
    count(*) AS calls,
    count(*) FILTER (status = 'error') AS errors,
    count(*) FILTER (status = 'denied') AS denied,
    count(*) FILTER (status = 'timeout') AS timeouts,
    count(*) FILTER (status = 'interrupted' OR status IS NULL) AS interrupted,
    count(*) FILTER (status IS DISTINCT FROM 'completed') / count(*) AS error_rate
FROM tool_call
GROUP BY tool
ORDER BY error_rate DESC, tool
