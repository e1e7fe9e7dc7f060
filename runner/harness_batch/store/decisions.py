"""The decisions of a run as the rules made them, read from its database."""

from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from harness_batch.permissions.recorded import DecidedCall, Decision
from harness_batch.store.asking import open_readonly_for_user_sql


def decided_calls(database: Path, run_id: str | None = None) -> tuple[DecidedCall, ...]:
    """The calls in their order; of one run when the database holds several. Blocks.

    Raises: UsageError, StorageError.
    """
    sql = files("harness_batch.store").joinpath("decisions.sql").read_text("utf-8")
    with open_readonly_for_user_sql(database) as opened:
        rows = [row for row in opened.ask(sql).rows if run_id in (None, row[1])]
    return tuple(_call(list(group)) for _, group in groupby(rows, key=lambda row: row[0]))


def _call(rows: list[tuple[Any, ...]]) -> DecidedCall:
    tool_call_id, run_id, session_id, recipe, item_key, tool, *_ = rows[0]
    return DecidedCall(
        tool_call_id=tool_call_id,
        run_id=run_id,
        session_id=session_id,
        recipe=recipe,
        item_key=item_key,
        tool=tool,
        decisions=tuple(
            Decision(
                permission=permission, pattern=pattern, action=action, rule=rule, source=source
            )
            for *_, permission, pattern, action, rule, source in rows
        ),
    )
