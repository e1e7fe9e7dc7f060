-- The public database. Later versions only add tables and columns; names and types never change.
-- Ids are text, times TIMESTAMPTZ in UTC, money DECIMAL(18,9) in US dollars and NULL when unpriced,
-- counts BIGINT. docs/analytics.md describes each column.

CREATE TABLE IF NOT EXISTS schema_version (
    version BIGINT PRIMARY KEY,
    applied_at TIMESTAMPTZ
);

-- Written last: the journal of this run is in here up to this event, totals and all.
CREATE TABLE IF NOT EXISTS projected (
    run_id VARCHAR PRIMARY KEY,
    seq BIGINT
);

CREATE TABLE IF NOT EXISTS run (
    run_id VARCHAR PRIMARY KEY,
    version VARCHAR,
    argv JSON,
    ci_provider VARCHAR,
    ci_url VARCHAR,
    trigger VARCHAR,
    shard_index BIGINT,
    shard_total BIGINT,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    exit_code BIGINT,
    budget_usd DECIMAL(18,9),
    lock_digest VARCHAR,
    sandbox JSON,
    joined_runs JSON
);

CREATE TABLE IF NOT EXISTS session (
    session_id VARCHAR PRIMARY KEY,
    run_id VARCHAR,
    parent_id VARCHAR,
    depth BIGINT,
    item_key VARCHAR,
    item_digest VARCHAR,
    recipe VARCHAR,
    params JSON,
    agent VARCHAR,
    model VARCHAR,
    repo VARCHAR,
    ref VARCHAR,
    base_sha VARCHAR,
    status VARCHAR,
    reason VARCHAR,
    flaky BOOLEAN,
    attempts BIGINT,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    steps BIGINT,
    tool_calls BIGINT,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cost_usd DECIMAL(18,9),
    detail VARCHAR,
    recipe_file VARCHAR,
    folder VARCHAR,
    matrix JSON
);

CREATE TABLE IF NOT EXISTS attempt (
    attempt_id VARCHAR PRIMARY KEY,
    session_id VARCHAR,
    n BIGINT,
    status VARCHAR,
    reason VARCHAR,
    error_kind VARCHAR,
    retryable BOOLEAN,
    wall_s DOUBLE,
    working_s DOUBLE,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    detail VARCHAR,
    answer VARCHAR
);

CREATE TABLE IF NOT EXISTS message (
    message_id VARCHAR PRIMARY KEY,
    session_id VARCHAR,
    attempt_id VARCHAR,
    role VARCHAR,
    model VARCHAR,
    agent VARCHAR,
    finish_reason VARCHAR,
    error VARCHAR,
    created_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS part (
    part_id VARCHAR PRIMARY KEY,
    message_id VARCHAR,
    session_id VARCHAR,
    idx BIGINT,
    type VARCHAR,
    body JSON
);

-- One row per request sent; duration_s NULL: opened and never closed, its spend is unknown.
CREATE TABLE IF NOT EXISTS model_call (
    model_call_id VARCHAR PRIMARY KEY,
    session_id VARCHAR,
    attempt_id VARCHAR,
    message_id VARCHAR,
    purpose VARCHAR,
    provider VARCHAR,
    request_model VARCHAR,
    response_model VARCHAR,
    response_id VARCHAR,
    step BIGINT,
    "try" BIGINT,
    started_at TIMESTAMPTZ,
    ttft_s DOUBLE,
    duration_s DOUBLE,
    finish_reason VARCHAR,
    error_kind VARCHAR,
    http_status BIGINT,
    input_tokens BIGINT,
    cache_read_tokens BIGINT,
    cache_write_5m_tokens BIGINT,
    cache_write_1h_tokens BIGINT,
    output_tokens BIGINT,
    reasoning_tokens BIGINT,
    usage_raw JSON,
    cost_usd DECIMAL(18,9),
    provider_cost_usd DECIMAL(18,9),
    cost_source VARCHAR,
    price_version VARCHAR,
    error VARCHAR
);

CREATE TABLE IF NOT EXISTS tool_call (
    tool_call_id VARCHAR PRIMARY KEY,
    session_id VARCHAR,
    attempt_id VARCHAR,
    message_id VARCHAR,
    tool VARCHAR,
    server VARCHAR,
    input JSON,
    status VARCHAR,
    error VARCHAR,
    exit_code BIGINT,
    output_bytes BIGINT,
    started_at TIMESTAMPTZ,
    duration_s DOUBLE
);

-- seq: the place of the event in the journal of the run.
CREATE TABLE IF NOT EXISTS permission_decision (
    tool_call_id VARCHAR,
    session_id VARCHAR,
    permission VARCHAR,
    pattern VARCHAR,
    action VARCHAR,
    rule VARCHAR,
    source VARCHAR,
    decided_at TIMESTAMPTZ,
    seq BIGINT,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE IF NOT EXISTS check_result (
    session_id VARCHAR,
    attempt_id VARCHAR,
    name VARCHAR,
    kind VARCHAR,
    passed BOOLEAN,
    exit_code BIGINT,
    duration_s DOUBLE,
    reason VARCHAR,
    output VARCHAR,
    seq BIGINT,
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE IF NOT EXISTS patch (
    session_id VARCHAR,
    attempt_id VARCHAR PRIMARY KEY,
    files BIGINT,
    added BIGINT,
    removed BIGINT,
    bytes BIGINT,
    sha256 VARCHAR,
    patch_id VARCHAR,
    applies BOOLEAN,
    refused VARCHAR,
    paths JSON
);

CREATE TABLE IF NOT EXISTS job (
    job_id VARCHAR PRIMARY KEY,
    session_id VARCHAR,
    child_session_id VARCHAR,
    agent VARCHAR,
    description VARCHAR,
    state VARCHAR,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ
);

CREATE TABLE IF NOT EXISTS price (
    price_version VARCHAR,
    provider VARCHAR,
    model VARCHAR,
    unit VARCHAR,
    usd_per_mtok DECIMAL(18,9),
    valid_from TIMESTAMPTZ,
    PRIMARY KEY (price_version, provider, model, unit)
);

CREATE TABLE IF NOT EXISTS notice (
    run_id VARCHAR,
    session_id VARCHAR,
    level VARCHAR,
    text VARCHAR,
    ts TIMESTAMPTZ,
    seq BIGINT,
    PRIMARY KEY (run_id, seq)
);

-- Each change of what a provider gets at a time; requests 0: it is asked no more in that run.
CREATE TABLE IF NOT EXISTS provider_limit (
    run_id VARCHAR,
    provider VARCHAR,
    requests BIGINT,
    before BIGINT,
    cause VARCHAR,
    cool_down_s DOUBLE,
    share_left DOUBLE,
    changed_at TIMESTAMPTZ,
    seq BIGINT,
    PRIMARY KEY (run_id, seq)
);
