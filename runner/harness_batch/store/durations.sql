-- How long do items take? Median seconds of passed and failed sessions, by item and by recipe.
SELECT 'item' AS kind, item_key AS name, median(wall) AS seconds
FROM (
    SELECT item_key, epoch(finished_at) - epoch(started_at) AS wall
    FROM session
    WHERE depth = 0 AND status IN ('passed', 'failed') AND finished_at >= started_at
)
GROUP BY item_key
UNION ALL
SELECT 'recipe', recipe, median(wall)
FROM (
    SELECT recipe, epoch(finished_at) - epoch(started_at) AS wall
    FROM session
    WHERE depth = 0 AND status IN ('passed', 'failed') AND finished_at >= started_at
)
GROUP BY recipe
