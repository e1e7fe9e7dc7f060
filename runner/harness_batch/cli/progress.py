"""What stderr shows while a run lasts, and the event stream of `--events`. Reads the bus only."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

import trio
from attrs import define, field

from harness_batch.app.execution import Watch
from harness_batch.codec import encode
from harness_batch.errors import UsageError
from harness_batch.events import (
    Event,
    ModelCallClosed,
    Notice,
    SessionCreated,
    SessionStarted,
    SessionUpdated,
    ToolCallStarted,
)
from harness_batch.records import Session
from harness_batch.store.bus import EventBus
from harness_batch_reports.hostile import one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

MARKS = {"passed": "ok", "failed": "FAILED", "errored": "ERROR", "cancelled": "cancelled",
         "skipped": "skipped", "cached": "cached"}  # fmt: skip
REFRESH_S = 0.2
LINE = 160
"""Characters of a progress line; agent text in it is cut and made inert."""


class Display(Protocol):
    """Takes events, shows something."""

    def take(self, event: Event) -> None:
        """One more event."""
        ...


@define
class PlainDisplay:
    """A line when a session begins and one when it ends."""

    total: int
    out: "IO[str] | _AboveLive"
    github: bool = False
    done: int = 0
    _keys: dict[str, str] = field(factory=dict)

    def take(self, event: Event) -> None:
        """Print what deserves a line."""
        match event.payload:
            case SessionCreated(session=session) if session.depth == 0:
                self._keys[session.session_id] = session.item_key
            case SessionStarted(attempt=attempt) if attempt.session_id in self._keys:
                tries = f" (attempt {attempt.n})" if attempt.n > 1 else ""
                self._say(f"start  {self._keys[attempt.session_id]}{tries}")
            case SessionUpdated(session=session) if session.status and session.depth == 0:
                self.done += 1
                self._say(f"[{self.done}/{self.total}] {_ended(session)}")
            case Notice(level=level, text=text) if level != "info":
                self._notice(level, text)
            case _:
                pass

    def _notice(self, level: str, text: str) -> None:
        if self.github:
            self.out.write(f"::{level}::{_escaped(one_line(text, LINE * 4))}\n")
            self.out.flush()
        else:
            self._say(f"{level}: {text}", LINE * 4)

    def _say(self, text: str, width: int = LINE) -> None:
        self.out.write(one_line(text, width) + "\n")
        self.out.flush()


@define
class JsonDisplay:
    """Every event as a line of JSON."""

    out: IO[bytes]

    def take(self, event: Event) -> None:
        """Write it."""
        self.out.write(encode(event) + b"\n")
        self.out.flush()


@define
class RichDisplay:
    """A table of what runs, redrawn a few times a second; ended sessions scroll above it."""

    total: int
    plain: PlainDisplay
    running: dict[str, list[str]] = field(factory=dict)
    """Session id -> key, what it does."""
    steps: int = 0

    def take(self, event: Event) -> None:
        """Note what is shown at the next refresh."""
        session_id = event.session_id or ""
        match event.payload:
            case SessionCreated(session=session) if session.depth == 0:
                self.running[session_id] = [session.item_key, "starting"]
            case ToolCallStarted(call=call) if session_id in self.running:
                self.running[session_id][1] = call.tool
            case ModelCallClosed():
                self.steps += 1
            case SessionUpdated(session=session) if session.status is not None:
                self.running.pop(session_id, None)
            case _:
                pass
        self.plain.take(event)

    def table(self) -> "RenderableType":
        """The table as it is now."""
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        head = f"{self.plain.done}/{self.total} sessions, {self.steps} model calls"
        table.add_row(Text(head, style="bold"), "")
        for key, doing in list(self.running.values())[:12]:
            table.add_row(Text(one_line(key, 60)), Text(one_line(doing, 20), style="dim"))
        return table


def watcher(progress: str, total: int, *, events_on_stdout: bool) -> Watch:
    """A task that shows the run until the bus is closed."""
    style = _chosen(progress)
    plain = PlainDisplay(total, sys.stderr, github=style == "github")
    displays: list[Display] = []
    if events_on_stdout:
        displays.append(JsonDisplay(sys.stdout.buffer))
    match style:
        case "plain" | "github":
            displays.append(plain)
        case "json":
            displays.append(JsonDisplay(sys.stderr.buffer))
        case "rich":
            return partial(_watch_live, RichDisplay(total, plain), displays)
        case _:
            pass
    return partial(_watch, displays)


def event_file(path: Path, cwd: Path) -> Callable[[Event], None]:
    """A follower of the journal that copies every event to a file. Raises: UsageError."""
    try:
        out = (cwd / path).open("ab", buffering=0)
    except OSError as error:
        raise UsageError(f"--events {path}: {error.strerror}") from error

    def take(event: Event) -> None:
        # A copy that cannot be written must not end the run: the journal has it all.
        with suppress(OSError):
            out.write(encode(event) + b"\n")

    return take


async def _watch(displays: list[Display], bus: EventBus) -> None:
    with bus.subscribe() as subscription:
        async for event in subscription:
            for display in displays:
                display.take(event)


async def _watch_live(live_display: RichDisplay, displays: list[Display], bus: EventBus) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False)
    live_display.plain.out = _AboveLive(console)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_refresh, live, live_display)
            await _watch([live_display, *displays], bus)
            nursery.cancel_scope.cancel()


async def _refresh(live: "Live", display: RichDisplay) -> None:
    while True:
        live.update(display.table(), refresh=True)
        await trio.sleep(REFRESH_S)


@define
class _AboveLive:
    """Lines that scroll above the live table."""

    console: "Console"

    def write(self, text: str) -> int:
        """One whole line; rich must not read markup in it."""
        self.console.print(text.rstrip("\n"), markup=False, highlight=False)
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""


def _chosen(progress: str) -> str:
    if progress != "auto":
        return progress
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return "github"
    return "rich" if sys.stderr.isatty() else "plain"


def _ended(session: Session) -> str:
    status = MARKS.get(session.status or "", session.status or "")
    why = f": {session.reason}: {session.detail or ''}" if session.reason else ""
    return f"{status}  {session.item_key}{why}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
