"""Names of items: keys that stay the same from night to night, and folders made of them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from harness_batch.plan.matrix import word

_ODD = re.compile(r"[^A-Za-z0-9._=,@-]")
_STEM = 180
"""Characters of a key kept in its folder's name; file systems take 255 bytes."""


def item_key(recipe: str, row: Mapping[str, object], repo: str | None) -> str:
    """`recipe/axis=value,...@repo`; `repo` is None when there is only one."""
    values = ",".join(f"{axis}={word(value)}" for axis, value in row.items())
    return f"{recipe}{'/' if values else ''}{values}{'@' if repo else ''}{repo or ''}"


def folder_names(keys: Sequence[str]) -> dict[str, str]:
    """Key -> its folder: one path segment, different for different keys."""
    names = {key: _folder(key, 4) for key in keys}
    used = Counter(names.values())
    return {key: name if used[name] == 1 else _folder(key, 16) for key, name in names.items()}


def _folder(key: str, hash_bytes: int) -> str:
    stem = _ODD.sub("_", key)[:_STEM]
    if not stem.strip("."):
        stem = "_" * max(1, len(stem))
    if stem == key and hash_bytes == 4:
        return stem
    digest = blake2b(key.encode(errors="surrogatepass"), digest_size=hash_bytes)
    return f"{stem}-{digest.hexdigest()}"


def repo_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """The folder's name of each; of those with the same name the parents' names, too."""
    folders = [path.parts[1:] for path in paths]
    depths = [1] * len(paths)
    while True:
        names = [
            _ODD.sub("_", "-".join(parts[-depth:]).removesuffix(".git")) or "root"
            for parts, depth in zip(folders, depths, strict=True)
        ]
        used = Counter(names)
        deeper = [
            index
            for index, parts in enumerate(folders)
            if used[names[index]] > 1 and depths[index] < len(parts)
        ]
        if not deeper:
            break
        for index in deeper:
            depths[index] += 1
    return tuple(
        name if used[name] == 1 else f"{name}-{names[:index].count(name) + 1}"
        for index, name in enumerate(names)
    )
