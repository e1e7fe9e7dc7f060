"""Identifiers that sort by time of birth: a prefix, `_`, and a ULID (monotonic in one process)."""

from typing import Literal

from ulid import ULID

Kind = Literal["run", "ses", "att", "msg", "prt", "mcl", "tcl", "job"]
"""run, session, attempt, message, part, model call, tool call, job."""


def new_id(kind: Kind) -> str:
    """A fresh identifier, e.g. `ses_01J9Z3NDEKTSV4RRFFQ69G5FAV`."""
    return f"{kind}_{ULID()}"
