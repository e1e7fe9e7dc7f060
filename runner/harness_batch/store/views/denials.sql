-- What did the rules deny, most frequent first?
-- chart: times by permission, pattern
SELECT
    permission, pattern, rule, source,
    count(*) AS times,
    count(DISTINCT session_id) AS sessions
FROM permission_decision
WHERE action = 'deny'
GROUP BY ALL
ORDER BY times DESC, permission, pattern, rule, source
