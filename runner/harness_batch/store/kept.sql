-- What a question is about: whole trees of sessions, chosen by the time and recipe of the session
-- of the plan, and by a model that had a part in the tree; and the calls of that model alone.
-- The variables since (TIMESTAMPTZ), recipe and model (GLOB) are NULL for no condition.
CREATE TABLE kept_model AS
SELECT DISTINCT provider, request_model
FROM history.model_call
WHERE
    getvariable('model') IS NULL
    OR request_model GLOB getvariable('model')
    OR provider || '/' || request_model GLOB getvariable('model');

CREATE TABLE chosen AS
WITH RECURSIVE tree AS (
    SELECT s.session_id AS root_id, s.session_id
    FROM history.session AS s
    LEFT JOIN history.run AS r USING (run_id)
    WHERE
        s.depth = 0
        AND (
            getvariable('since') IS NULL
            OR coalesce(s.started_at, r.started_at) >= CAST(getvariable('since') AS TIMESTAMPTZ)
        )
        AND (getvariable('recipe') IS NULL OR s.recipe GLOB getvariable('recipe'))
    UNION
    SELECT tree.root_id, s.session_id
    FROM tree JOIN history.session AS s ON s.parent_id = tree.session_id
)
SELECT tree.root_id, s.session_id, s.run_id, s.model
FROM tree JOIN history.session AS s USING (session_id);

CREATE TABLE kept_session AS
SELECT session_id, run_id
FROM chosen
WHERE
    getvariable('model') IS NULL
    OR root_id IN (
        SELECT root_id
        FROM chosen
        WHERE
            model GLOB getvariable('model')
            OR substr(model, strpos(model, '/') + 1) GLOB getvariable('model')
            OR session_id IN (
                SELECT m.session_id
                FROM history.model_call AS m
                JOIN kept_model AS k
                    ON k.provider = m.provider AND k.request_model = m.request_model
            )
    );
