-- How likely does at least one of k tries of the same item pass (unbiased estimate)?
-- chart: pass_at_k by recipe, model, k
WITH item AS (
    SELECT
        recipe, model, item_key, item_digest,
        count(*) AS tries,
        count(*) FILTER (status = 'passed') AS passed
    FROM session
    WHERE depth = 0 AND status IN ('passed', 'failed')
    GROUP BY ALL
)
SELECT
    recipe, model, k,
    count(*) AS items,
    CAST(sum(tries) AS BIGINT) AS tries,
    -- 1 - C(n - c, k) / C(n, k), as in Chen et al., 2021 (arXiv:2107.03374)
    avg(
        CASE
            WHEN tries - passed < k THEN 1.0
            WHEN passed = 0 THEN 0.0
            ELSE 1 - list_product(
                list_transform(range(tries - passed + 1, tries + 1), lambda i: 1 - k / i)
            )
        END
    ) AS pass_at_k
FROM item, (VALUES (1), (2), (3), (5), (10)) AS ks (k)
WHERE tries >= k
GROUP BY recipe, model, k
ORDER BY recipe, model, k
