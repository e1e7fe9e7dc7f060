"""Server-sent events out of bytes, whatever the reads cut apart.

Follows the WHATWG rules (BOM, comments, CR, LF and CRLF, several `data` lines) and is tolerant
where servers are not: a last event without its blank line counts, an `error:` line is an event of
that name, bytes that are no UTF-8 become U+FFFD. Events without data are nothing. The events are
httpx-sse's records; the decoder is our own because one read has to give all its events at once,
and because bytes without a line end must be bounded.
"""

import re

from httpx_sse import ServerSentEvent

from harness_batch.errors import ProtocolBroken

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""The longest event that is taken for one."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventDecoder:
    """Feed it what was read, in order; `end` once nothing more will come."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        self._unfinished_size = 0
        self._after_cr = False
        self._at_start = True
        self._event = ""
        self._data: list[str] = []
        self._data_size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that became complete.

        Raises: ProtocolBroken when one is longer than MAX_EVENT_BYTES.
        """
        if self._after_cr and chunk:
            # The CR before already ended its line; an LF now belongs to it.
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.split(b"\n") if b"\r" not in chunk else _LINE_END.split(chunk)
        rest = lines.pop()
        events: list[ServerSentEvent] = []
        if lines and self._unfinished:
            self._unfinished.append(lines[0])
            lines[0] = b"".join(self._unfinished)
            self._unfinished, self._unfinished_size = [], 0
        for line in lines:
            self._take(line, events)
        if rest:
            self._unfinished.append(rest)
            self._unfinished_size += len(rest)
            self._bound(self._unfinished_size)
        return events

    def end(self) -> list[ServerSentEvent]:
        """What was still waiting for its line end or blank line."""
        events: list[ServerSentEvent] = []
        if self._unfinished:
            self._take(b"".join(self._unfinished), events)
            self._unfinished, self._unfinished_size = [], 0
        self._take(b"", events)
        return events

    def _take(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._add(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"error":  # llama.cpp's server has sent errors so
            self._event = "error"
            self._add(value)

    def _add(self, value: bytes) -> None:
        self._data.append(value.decode("utf-8", "replace"))
        self._data_size += len(value)
        self._bound(self._data_size)

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
            if data:
                events.append(ServerSentEvent(event=self._event, data=data))
            self._data, self._data_size = [], 0
        self._event = ""

    @staticmethod
    def _bound(size: int) -> None:
        if size > MAX_EVENT_BYTES:
            raise ProtocolBroken(f"the server sent an event of more than {MAX_EVENT_BYTES} bytes")
