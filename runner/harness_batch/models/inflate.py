"""Replies of servers that compress them although `identity` was asked for. Pure.

One layer of gzip or deflate, as real servers send it, swells what one read gave to some megabytes;
two layers would make gigabytes of it.
"""

import zlib
from collections.abc import Callable, Sequence

import httpx

WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""zlib's name for the format."""

Unpack = Callable[[Sequence[bytes]], list[bytes]]
"""What the pieces of one read come to; nothing, when more of them is wanted first."""


def unpacking(encoding: str) -> Unpack:
    """For a body under `content-encoding: ENCODING`.

    What it returns raises httpx.DecodingError for a body that is not that, and for an encoding
    that nobody asked for.
    """
    word = encoding.strip().lower()
    if word in {"", "identity"}:
        return list
    bits = WINDOW_BITS.get(word)
    decoder = None if bits is None else zlib.decompressobj(bits)

    def unpacked(pieces: Sequence[bytes]) -> list[bytes]:
        if decoder is None:
            told = f"the reply is encoded as {encoding[:40]!r}, which nobody asked for"
            raise httpx.DecodingError(told)
        try:
            return [out for piece in pieces if (out := decoder.decompress(piece))]
        except zlib.error:
            raise httpx.DecodingError(
                f"the reply is not the {word} that it is said to be"
            ) from None

    return unpacked
