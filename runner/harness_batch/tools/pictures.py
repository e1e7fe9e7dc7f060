"""Pictures among files: known by their first bytes, whatever their names say; size-capped."""

import base64
import os

from harness_batch.messages import Image

MAX_IMAGE = 2 * 1024 * 1024
"""Bytes of a file that goes to the model; providers refuse images over some megabytes."""
_PREFIXES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type(start: bytes) -> str | None:
    """Of a file with these first bytes; None when it is no picture that models take."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for prefix, kind in _PREFIXES if start.startswith(prefix)), None)


def picture(descriptor: int, size: int) -> Image | None:
    """An open file of `size` bytes as a picture; None when it is none, or too large.

    Raises: OSError.
    """
    if size > MAX_IMAGE or media_type(os.pread(descriptor, 16, 0)) is None:
        return None
    data = b""
    while len(data) <= MAX_IMAGE and (more := os.pread(descriptor, MAX_IMAGE + 1, len(data))):
        data += more
    kind = media_type(data[:16])
    if kind is None or len(data) > MAX_IMAGE:
        return None
    return Image(media_type=kind, data=base64.b64encode(data).decode())
