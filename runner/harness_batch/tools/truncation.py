"""What the model gets to read of a long output: 2,000 lines, 50 KiB, and where the rest is.

A result's head is kept, or its tail where the tool says that this end matters (bash). A line that
is too long for the rest of the room is cut in its middle, never dropped. The whole output goes to
a file of the run folder, unless the tool has written it there already.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from harness_batch.tools.protocol import NO_SECRETS, Secrets, ToolResult

MAX_LINES = 2000
"""Lines of what the model reads, notice included."""
MAX_BYTES = 50 * 1024
"""Bytes of it in UTF-8, notice included."""
_NOTICE_LINES = 2
_NOTICE_BYTES = 1024
_WORTH_CUTTING = 1000
"""Bytes of a line, or of the room left, from which half a line is better than none."""


def shorten(result: ToolResult, outputs: Path, call_id: str, secrets: Secrets = NO_SECRETS) -> str:
    """The output for the model. Writes `outputs/<call_id>.txt` when something is left out.

    The file is without `secrets`; the model is given what the tool said.

    Blocks on the disk when it writes. Never raises: where the file cannot be written, the
    notice says so.
    """
    text = result.output.encode(errors="backslashreplace").decode()
    if result.whole is None and _fits(text, MAX_LINES, MAX_BYTES):
        return text
    where = f"the whole output is in {result.whole}"
    if result.whole is None:
        where = _kept(text, outputs / f"{safe_name(call_id)}.txt", secrets)
    kept = _ends(text, result.keep)
    size = result.metadata.get("output_bytes", len(text.encode()))
    side = "beginning" if result.keep == "tail" else "rest"
    notice = (
        f"[... the {side} is left out: {size} bytes in all; {where[-_NOTICE_BYTES // 2 :]} ...]"
    )
    return f"{notice}\n{kept}" if result.keep == "tail" else f"{kept}\n{notice}"


def safe_name(call_id: str) -> str:
    """A call id as a file name; ids come from providers and may hold anything."""
    if re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", call_id):
        return call_id
    return "call-" + hashlib.blake2b(call_id.encode(errors="replace"), digest_size=12).hexdigest()


def cut_middle(line: str, most: int) -> str:
    """At most `most` bytes (>= 100) of a line: its two ends and what is missing between."""
    raw = line.encode()
    if len(raw) <= most:
        return line
    half = (most - 60) // 2
    head = raw[:half].decode(errors="ignore")
    tail = raw[-half:].decode(errors="ignore")
    gone = len(raw) - len(head.encode()) - len(tail.encode())
    return f"{head}[... {gone} bytes left out ...]{tail}"


def _ends(text: str, keep: str) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if keep == "tail":
        return "\n".join(reversed(_first(reversed(lines))))
    return "\n".join(_first(lines))


def _first(lines: Iterable[str]) -> list[str]:
    """As many as the limits allow; a long one that does not fit as a whole is cut."""
    kept: list[str] = []
    room = MAX_BYTES - _NOTICE_BYTES
    for line in lines:
        if len(kept) == MAX_LINES - _NOTICE_LINES:
            break
        size = len(line.encode()) + 1
        if size <= room:
            kept.append(line)
            room -= size
            continue
        if size > _WORTH_CUTTING and room > _WORTH_CUTTING:
            kept.append(cut_middle(line, room - 1))
        break
    return kept


def _fits(text: str, lines: int, size: int) -> bool:
    return len(text.encode()) <= size and text.count("\n") + (not text.endswith("\n")) <= lines


def _kept(text: str, file: Path, secrets: Secrets) -> str:
    try:
        file.write_bytes(secrets.in_bytes(text.encode()))
    except OSError as error:
        return f"the whole output could not be kept: {error.strerror}"
    return f"the whole output is in {file}"
