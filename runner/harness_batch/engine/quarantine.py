"""Outputs in which a secret of the runner's stands do not leave the session. Pure.

What is written of them is masked; a binary file inside a patch is packed, so that nothing could be
masked there: it is looked into here, and left out of what is kept.
"""

import base64
import re
import zlib
from collections.abc import Iterator

from harness_batch.tools.protocol import Secrets

QUARANTINED_PATCH = "change.patch.quarantined"
"""For people to see what was changed; not for `git apply`."""
LEAK = "a secret of the runner was found in the output"

MOST_UNPACKED = 64 << 20
"""Bytes of one binary file that are looked into; the workspace takes no bigger ones."""
_SECTION = re.compile(rb"^(?:literal|delta) [0-9]+\n((?:[A-Za-z][!-~]+\n)+)", re.MULTILINE)
"""git's binary hunk: lines of base85, each with its length as a letter before it."""


def leaks(patch: bytes, secrets: Secrets) -> bool:
    """Whether a secret stands in the patch, its binary files included."""
    return secrets.finds(patch) or any(map(secrets.finds, _unpacked(patch)))


def withheld(patch: bytes) -> bytes:
    """The patch without the content of binary files; the rest is masked where it is written."""
    return _SECTION.sub(b"(binary content left out)\n", patch)


def _unpacked(patch: bytes) -> Iterator[bytes]:
    for section in _SECTION.finditer(patch):
        delta = section[0].startswith(b"delta")
        try:
            packed = b"".join(map(_line, section[1].splitlines()))
            data = zlib.decompressobj().decompress(packed, MOST_UNPACKED)
            yield _inserted(data) if delta else data
        except (ValueError, IndexError, zlib.error):
            continue  # text that only looks like it: the search of the whole patch covers it


def _line(line: bytes) -> bytes:
    letter = line[0]
    size = letter - (ord("A") - 1 if letter <= ord("Z") else ord("a") - 27)
    return base64.b85decode(line[1:])[:size]


def _inserted(delta: bytes) -> bytes:
    """What a delta adds to what was there: its instructions are `copy` and `insert N bytes`."""
    at = 0
    for _ in range(2):  # the sizes of source and target
        while delta[at] & 0x80:
            at += 1
        at += 1
    added: list[bytes] = []
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 0x80:
            at += (code & 0x7F).bit_count()
        else:
            added.append(delta[at : at + code])
            at += code
    return b"".join(added)
