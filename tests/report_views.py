"""A small database whose tables have the columns of the `report_*` views.

The tables stand in for the views, column by column: whoever writes the views is held to these.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

TOGETHER = 200
"""Rows of one statement: one by one they take a hundred times as long."""
_STAMP, _JSON, _MONEY = "TIMESTAMPTZ", "JSON", "DECIMAL(18,9)"


def _columns(text: str, kind: str = "VARCHAR") -> dict[str, str]:
    return dict.fromkeys(text.split(), kind)


COLUMNS: dict[str, dict[str, str]] = {
    "report_run": {
        **_columns("run_id version"),
        "argv": _JSON,
        **_columns("ci_provider ci_url trigger"),
        **_columns("shard_index shard_total", "BIGINT"),
        **_columns("started_at finished_at", _STAMP),
        "exit_code": "BIGINT",
        "budget_usd": _MONEY,
        "lock_digest": "VARCHAR",
        "sandbox": _JSON,
    },
    "report_session": {
        **_columns("run_id session_id item_key item_digest recipe recipe_file folder"),
        **_columns("params matrix", _JSON),
        **_columns("agent model repo ref base_sha status reason detail"),
        "flaky": "BOOLEAN",
        "attempts": "BIGINT",
        **_columns("started_at finished_at", _STAMP),
        **_columns("wall_s working_s", "DOUBLE"),
        **_columns("steps tool_calls", "BIGINT"),
        **_columns("input_tokens cache_read_tokens output_tokens", "BIGINT"),
        "cost_usd": _MONEY,
        **_columns("unpriced_calls model_calls", "BIGINT"),
        **_columns("error_kind answer"),
        "denials": "BIGINT",
        "attempt_id": "VARCHAR",
        "attempt_n": "BIGINT",
        **_columns("patch_files patch_added patch_removed", "BIGINT"),
        "patch_bytes": "BIGINT",
        **_columns("patch_sha256 patch_id"),
        "patch_applies": "BOOLEAN",
        "patch_refused": "VARCHAR",
        "patch_paths": _JSON,
    },
    "report_attempt": {
        **_columns("session_id attempt_id"),
        "n": "BIGINT",
        **_columns("status reason detail error_kind"),
        "wall_s": "DOUBLE",
        **_columns("started_at finished_at", _STAMP),
    },
    "report_check": {
        **_columns("run_id session_id item_key attempt_id name kind"),
        "passed": "BOOLEAN",
        "exit_code": "BIGINT",
        "duration_s": "DOUBLE",
        **_columns("reason output"),
    },
    "report_denial": {
        **_columns("run_id session_id item_key tool permission pattern rule source"),
        "times": "BIGINT",
    },
    "report_message": {
        **_columns("session_id attempt_id"),
        "attempt_n": "BIGINT",
        **_columns("message_id role model agent finish_reason error"),
        "created_at": _STAMP,
    },
    "report_part": {
        **_columns("session_id message_id part_id"),
        "idx": "BIGINT",
        "type": "VARCHAR",
        "body": _JSON,
    },
    "report_model_call": {
        **_columns("session_id attempt_id"),
        **_columns("step try", "BIGINT"),
        **_columns("purpose provider request_model"),
        "started_at": _STAMP,
        **_columns("ttft_s duration_s", "DOUBLE"),
        **_columns("finish_reason error_kind error"),
        "http_status": "BIGINT",
        **_columns("input_tokens cache_read_tokens output_tokens", "BIGINT"),
        "cost_usd": _MONEY,
        "cost_source": "VARCHAR",
    },
    "report_tool_call": {
        **_columns("session_id attempt_id tool_call_id tool status error"),
        "exit_code": "BIGINT",
        "started_at": _STAMP,
        "duration_s": "DOUBLE",
        "output_bytes": "BIGINT",
    },
    "report_child": {
        **_columns("run_id session_id parent_id"),
        "depth": "BIGINT",
        **_columns("item_key recipe agent model status reason detail"),
    },
    "report_notice": {**_columns("run_id session_id level text"), "ts": _STAMP},
}

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]


def write(path: Path, tables: Tables) -> Path:
    """The tables as a closed database file at `path`; a column that a row leaves out is NULL."""
    with duckdb.connect(str(path)) as connection:
        for table, columns in COLUMNS.items():
            declared = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {table} ({declared})")
            marks = f"({', '.join('?' * len(columns))})"
            rows = [_cells(row, columns) for row in tables.get(table, ())]
            for start in range(0, len(rows), TOGETHER):
                some = rows[start : start + TOGETHER]
                values = ", ".join([marks] * len(some))
                cells = [cell for row in some for cell in row]
                connection.execute(f"INSERT INTO {table} VALUES {values}", cells)
    return path


def _cells(row: Row, columns: Mapping[str, str]) -> list[Any]:
    assert row.keys() <= columns.keys(), row.keys() - columns.keys()
    return [
        json.dumps(row[name]) if kind == _JSON and row.get(name) is not None else row.get(name)
        for name, kind in columns.items()
    ]
