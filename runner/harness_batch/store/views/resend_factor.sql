-- How often is the same conversation sent: input of all steps by that of the longest one?
-- chart: resend_factor by recipe, model
WITH attempt_input AS (
    SELECT
        session_id, provider, request_model,
        count(*) AS calls,
        sum(input_tokens) AS input_tokens,
        max(input_tokens) AS longest_tokens
    FROM model_call
    WHERE purpose = 'step' AND input_tokens > 0
    GROUP BY session_id, attempt_id, provider, request_model
)
SELECT
    s.recipe,
    a.provider,
    a.request_model AS model,
    count(*) AS conversations,
    CAST(sum(a.calls) AS BIGINT) AS model_calls,
    CAST(sum(a.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(a.longest_tokens) AS BIGINT) AS longest_tokens,
    sum(a.input_tokens) / sum(a.longest_tokens) AS resend_factor
FROM attempt_input AS a
LEFT JOIN session AS s USING (session_id)
GROUP BY ALL
ORDER BY resend_factor DESC, s.recipe, a.provider, model
