"""The resolved inputs of a run with their hashes: what was run, to the byte."""

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from harness_batch import __version__
from harness_batch.messages import JsonObject
from harness_batch.plan.item import Item

_OF_THE_MACHINE = ("recipe", "repo")
"""Where files lie here: the same inputs lie elsewhere on another machine."""


def lock_of(items: Iterable[Item], shards: Sequence[Sequence[str]] = ()) -> JsonObject:
    """Every item with what decides its answer; the same inputs give the same lock.

    `shards`: the item keys of each, when several machines share the run; `items` are all of them.
    """
    return {
        "version": __version__,
        "items": [
            {
                "key": item.key,
                "digest": item.digest,
                "name": item.recipe.name,
                "folder": item.folder,
                "recipe": str(item.recipe.file),
                "models": [str(model) for model in item.models],
                "agent": item.agent.name,
                "params": item.params,
                "matrix": item.matrix,
                "repo": item.repo,
                "ref": item.ref,
                "base_sha": item.base_sha,
            }
            for item in items
        ],
        "shards": [list(keys) for keys in shards],
    }


def lock_text(lock: JsonObject) -> str:
    """As the file holds it."""
    return json.dumps(lock, indent=2, ensure_ascii=False, default=str) + "\n"


def lock_digest(lock: JsonObject) -> str:
    """Hash over the items and who takes them, in hex; the same on every machine of a run."""
    items = [
        {key: value for key, value in item.items() if key not in _OF_THE_MACHINE}
        for item in lock["items"]
    ]
    text = json.dumps([items, lock["shards"]], sort_keys=True, default=str)
    return blake2b(text.encode(), digest_size=16).hexdigest()
