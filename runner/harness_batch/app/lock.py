"""The resolved inputs of a run with their hashes: what was run, to the byte."""

import json
from hashlib import blake2b

from harness_batch import __version__
from harness_batch.messages import JsonObject
from harness_batch.plan.item import Plan


def lock_of(plan: Plan) -> JsonObject:
    """Every item with what decides its answer; the same inputs give the same lock."""
    return {
        "version": __version__,
        "items": [
            {
                "key": item.key,
                "digest": item.digest,
                "recipe": str(item.recipe.file),
                "models": [str(model) for model in item.models],
                "agent": item.agent.name,
                "params": item.params,
                "matrix": item.matrix,
                "repo": item.repo,
                "ref": item.ref,
                "base_sha": item.base_sha,
            }
            for item in plan.items
        ],
    }


def lock_text(lock: JsonObject) -> str:
    """As the file holds it."""
    return json.dumps(lock, indent=2, ensure_ascii=False, default=str) + "\n"


def lock_digest(lock: JsonObject) -> str:
    """Hash over the items, in hex."""
    items = json.dumps(lock["items"], sort_keys=True, default=str).encode()
    return blake2b(items, digest_size=16).hexdigest()
