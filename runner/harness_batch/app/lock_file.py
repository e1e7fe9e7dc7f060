"""`lock.json` of a run read back: records, or one refusal. Pure but for reading the file.

It came from another machine: every value is looked at before anybody relies on it.
"""

import json
from pathlib import Path
from typing import Final

from attrs import field, frozen

from harness_batch.errors import UsageError
from harness_batch.messages import JsonObject

MOST_BYTES: Final = 256 << 20


@frozen(kw_only=True)
class LockedItem:
    """An item of the plan, as far as its session's row says it."""

    key: str
    digest: str
    name: str
    """Of its recipe."""
    agent: str
    model: str
    """The first one that is asked."""
    params: JsonObject
    matrix: JsonObject
    recipe: str | None
    folder: str | None
    repo: str | None
    ref: str | None
    base_sha: str | None


@frozen(kw_only=True)
class Locked:
    """The resolved inputs of a run."""

    items: tuple[LockedItem, ...]
    shards: tuple[tuple[str, ...], ...]
    """The item keys of each; empty for a run that was not cut."""
    data: bytes = field(repr=False)
    """The file as it is."""


def read_lock(path: Path) -> Locked | None:
    """None when there is no such file. Raises: UsageError for one that cannot be what it should."""
    try:
        if not path.exists():
            return None
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} is no plain file of at most {MOST_BYTES} bytes")
        data = path.read_bytes()
        lock = json.loads(data)
        items, shards = lock["items"], lock["shards"]
        return Locked(
            items=tuple(map(_item, _list(items))),
            shards=tuple(tuple(map(_text, _list(keys))) for keys in _list(shards)),
            data=data,
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        told = f"{error} is missing" if isinstance(error, KeyError) else error
        raise UsageError(f"{path} does not hold the resolved inputs of a run: {told}") from error


def _item(value: object) -> LockedItem:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.80} is no item")
    return LockedItem(
        key=_text(value["key"]),
        digest=_text(value["digest"]),
        name=_text(value["name"]),
        agent=_text(value["agent"]),
        model=_first(_list(value["models"])),
        params=_object(value["params"]),
        matrix=_object(value["matrix"]),
        recipe=_text_or_none(value["recipe"]),
        folder=_text_or_none(value["folder"]),
        repo=_text_or_none(value["repo"]),
        ref=_text_or_none(value["ref"]),
        base_sha=_text_or_none(value["base_sha"]),
    )


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.80} is no list")
    return value


def _first(values: list[object]) -> str:
    if not values:
        raise ValueError("an item has no model")
    return _text(values[0])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.80} is no object")
    return value
