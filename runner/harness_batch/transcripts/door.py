"""The transcripts door: which agent wrote a file is told by what is in it, never by its name."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness_batch.transcripts import claude_code, codex, gemini, opencode
from harness_batch.transcripts.record import Transcript
from harness_batch.transcripts.values import Source, Values, lines, parsed

FORMATS: Final = "Claude Code JSONL, Codex rollout JSONL, Gemini CLI JSON, opencode SQLite"
MAX_BYTES: Final = 2_000_000_000
_LOOKED_AT: Final = 20
"""Lines that are looked at to tell the format."""


def read_transcripts(file: Path) -> tuple[Transcript, ...]:
    """All sessions of the file. Raises: FaultyInput with the place of what is wrong."""
    source = Source(file)
    try:
        if not file.is_file():
            raise source.fault("there is no such file")
        if file.stat().st_size > MAX_BYTES:
            raise source.fault("the file is too large for a transcript (2 GB)")
        with file.open("rb") as stream:
            begin = stream.read(4096)
        found = _read(file, source, begin)
    except OSError as error:
        raise source.fault(f"it cannot be read: {error.strerror}") from error
    if not any(transcript.said for transcript in found):
        raise source.fault("there is no message in it")
    return found


def _read(file: Path, source: Source, begin: bytes) -> tuple[Transcript, ...]:
    if begin.startswith(opencode.MAGIC):
        return opencode.read(file)
    if not begin.lstrip().startswith(b"{"):
        raise source.fault(f"this is none of the formats that are known: {FORMATS}")
    reader = _line_reader(file, begin)
    if reader is not None:
        return reader(file)
    document = parsed(file.read_text("utf-8", errors="replace"), source)
    if gemini.is_it(document):
        return gemini.read(file, Values(source, document))
    raise source.fault(f"this is none of the formats that are known: {FORMATS}")


def _line_reader(file: Path, begin: bytes) -> Callable[[Path], tuple[Transcript, ...]] | None:
    """Of a file that holds an object a line; None for one object over many lines."""
    if begin.lstrip()[:2].strip() == b"{":
        return None  # laid out: the first line is no object yet
    for number, line in enumerate(lines(file)):
        if claude_code.is_it(line.body):
            return claude_code.read
        if codex.is_it(line.body):
            return codex.read
        if number >= _LOOKED_AT or gemini.is_it(line.body):
            return None
    return None
