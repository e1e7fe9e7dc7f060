"""GitHub's workflow commands: annotations, output values, and a fence around foreign output.

GitHub obeys `::name::` lines of a log. Ours are escaped as its runner undoes it; what an agent or
its tools print stands between `stop_commands` and its end, under a token nobody can guess.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path

from harness_batch_reports.hostile import one_line
from harness_batch_reports.places import Places
from harness_batch_reports.reasons import kind, meaning
from harness_batch_reports.records import BatchReport, Session
from harness_batch_reports.verdict import worst_first

ANNOTATIONS = 10
"""GitHub shows ten of a kind and step."""
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = _DATA | {":": "%3A", ",": "%2C"}


def annotations(report: BatchReport, project: Path | None = None) -> str:
    """Lines to print: one for each session that is not good, worst first, at most ten.

    They stand at the recipe, relative to `project` (see `junit.render`).
    """
    places = Places.of(report, project)
    bad = [s for s in worst_first(report.sessions) if kind(s) in {"failure", "error"}]
    shown = bad if len(bad) <= ANNOTATIONS else bad[: ANNOTATIONS - 1]
    lines = [_annotation(session, places) for session in shown]
    if rest := len(bad) - len(shown):
        lines.append(f"::error title=harness-batch::{rest} more sessions did not pass")
    return "".join(f"{line}\n" for line in lines)


def _annotation(session: Session, places: Places) -> str:
    why = meaning(session)
    detail = one_line(session.detail or "", 300)
    text = one_line(why.text, 200) + (f": {detail}" if detail else "")
    properties = {"title": one_line(session.item_key, 200)}
    if session.recipe_file:
        properties |= {"file": places.in_project(session.recipe_file), "line": "1"}
    said = ",".join(f"{name}={_escaped(value, _PROPERTY)}" for name, value in properties.items())
    return f"::error {said}::{_escaped(text, _DATA)}"


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return text.translate({ord(character): escape for character, escape in table.items()})


def stopped(text: str, token: str | None = None) -> str:
    """The text between `stop-commands` and its end: no line in it is obeyed.

    `token` is random when it is not given.
    """
    token = token or secrets.token_hex(16)
    body = text if text.endswith("\n") else f"{text}\n"
    return f"::stop-commands::{token}\n{body}::{token}::\n"
