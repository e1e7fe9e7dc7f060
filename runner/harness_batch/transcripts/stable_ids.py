"""Ids that the same transcript always gets: sorted by time as ours are, the rest a hash."""

import hashlib
from datetime import datetime

from attrs import define
from ulid import ULID

from harness_batch.ids import Kind

_DAWN_MS = 1
_LAST_MS = 2**48 - 1


@define
class StableIds:
    """Ids of one session. Those that are asked for later sort later."""

    seed: str
    """Names the session among all of all agents."""
    _last_ms: int = _DAWN_MS
    _number: int = 0

    def of(self, kind: Kind, key: str, at: datetime) -> str:
        """The id of the thing called `key`, from about then."""
        self._last_ms = min(_LAST_MS, max(self._last_ms, int(at.timestamp() * 1000)))
        self._number += 1
        order = (self._number % 2**24).to_bytes(3, "big")
        digest = hashlib.sha256(f"{self.seed}\0{kind}\0{key}".encode(errors="replace")).digest()
        return f"{kind}_{ULID.from_bytes(self._last_ms.to_bytes(6, 'big') + order + digest[:7])}"


def id_of(kind: Kind, seed: str, at: datetime) -> str:
    """The id of a run or session, from about then."""
    return StableIds(seed).of(kind, seed, at)
