"""Where a session that was played again differs from its recording, as a diff. Pure.

What legitimately differs is made equal first: work tree, private and output folders, ids, times of
day and dates, durations, process ids, addresses in memory, hashes of commits made on the way, and
the order of files that are listed newest first.
"""

import difflib
import re
from collections.abc import Iterator

from attrs import evolve, frozen

from harness_batch.models.recording import Called, RecordedSession, Recording
from harness_batch.models.renames import NAMES
from harness_batch.models.replayed import is_of_replay

MOST_LINES = 200
"""Of one call's diff."""
NEWEST_FIRST = ("glob", "grep")
"""Tools whose order hangs on when files were written, which a fresh work tree does not keep."""
ENDED_BY_ITSELF = ("passed", "failed")

_CLOCK = r"\d\d:\d\d(:\d\d([.,]\d+)?)?"
_DAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_UNITS = "ns|us|µs|ms|s|sec|secs|seconds?|min|minutes?"
_RULES = tuple(
    (re.compile(pattern), stand_in)
    for pattern, stand_in in (
        (rf"\b\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(Z|\s?[+-]\d\d:?\d\d)?", "<time>"),
        (rf"\b({_DAYS}),? .{{0,12}}{_CLOCK}( [A-Z]{{3,4}})?( \d{{4}})?( [+-]\d{{4}})?", "<time>"),
        (rf"\b({_MONTHS}) [ \d]\d ({_CLOCK}| \d{{4}})", "<time>"),
        (r"\b\d\d:\d\d:\d\d([.,]\d+)?\b", "<time>"),
        (r"\b\d{4}-\d\d-\d\d\b", "<date>"),
        (r"\b\d+m\d+([.,]\d+)?s\b", "<duration>"),
        (rf"\b\d+(\.\d+)? ?({_UNITS})\b", "<duration>"),
        (r"\b0x[0-9a-f]{6,16}\b", "<address>"),
        (r"\b(pid|PID|process)([ =:]+)\d+\b", r"\1\2<pid>"),
        (r"(?m)^\[([^\]\n]{1,80}) [0-9a-f]{7,40}\]", r"[\1 <commit>]"),
    )
)
"""What differs from run to run -> what stands for it. docs/replay.md tells them."""


@frozen
class Difference:
    """One thing that is not as recorded: what it is about, and the diff's lines."""

    about: str
    lines: tuple[str, ...]


def differences(then: Recording, now: Recording) -> tuple[Difference, ...]:
    """All of them, session by session, call by call; none: it went as recorded."""
    found: list[Difference] = []
    for at, session in enumerate(then.sessions):
        name = f"session {at + 1} ({session.recipe}, agent {session.agent})"
        twin = now.sessions[at] if at < len(now.sessions) else None
        if twin is None:
            found.append(Difference(name, ("-it was started", "+it was never started")))
        else:
            found.extend(_of_session(session, twin, name if at else ""))
    for session in now.sessions[len(then.sessions) :]:
        name = f"session ({session.recipe}, agent {session.agent})"
        found.append(Difference(name, ("-it was never started", "+it was started")))
    return tuple(found)


def normal(text: str) -> str:
    """The text with what differs from run to run made equal."""
    text = NAMES.sub(lambda match: f"<{match.lastgroup}>", text)
    for pattern, stand_in in _RULES:
        text = pattern.sub(stand_in, text)
    return text


def as_text(differences: tuple[Difference, ...]) -> str:
    """For people."""
    parts = []
    for difference in differences:
        shown = difference.lines[:MOST_LINES]
        left = len(difference.lines) - len(shown)
        more = (f"… and {left} more lines",) if left else ()
        parts.append("\n".join((f"--- {difference.about}", *shown, *more)))
    return "\n".join(parts)


def _of_session(then: RecordedSession, now: RecordedSession, name: str) -> Iterator[Difference]:
    prefix = f"{name}: " if name else ""
    old, new = _calls(then), _calls(now)
    for at in range(max(len(old), len(new))):
        before = old[at] if at < len(old) else None
        after = new[at] if at < len(new) else None
        call = before or after
        assert call is not None
        lines = tuple(_diff(_told(before), _told(after)))
        if lines:
            yield Difference(f"{prefix}call {at + 1}: {call.name} {call.arguments}"[:300], lines)
    for check, passed in then.checks.items():
        again = now.checks.get(check)
        if again is not passed:
            lines = (f"-{_verdict(passed)}", f"+{_verdict(again)}")
            yield Difference(f"{prefix}check {check}", lines)
    leaked = then.reason == "secret_leak"  # the recording has no secret that could leak again
    if (
        then.status in ENDED_BY_ITSELF
        and not leaked
        and (then.status, then.reason) != (now.status, now.reason)
    ):
        lines = (f"-{_ending(then)}", f"+{_ending(now)}")
        yield Difference(f"{prefix}outcome", lines)


def _calls(session: RecordedSession) -> list[Called]:
    """Those that were taken up."""
    return [
        block
        for call in session.calls
        for block in call.blocks
        if isinstance(block, Called) and block.result is not None
    ]


def _told(call: Called | None) -> list[str]:
    if call is None or call.result is None:
        return ["(not called)"]
    head = f"{call.name}: {'failed' if call.result.failed else 'answered'}"
    lines = normal(call.result.output).split("\n")
    return [head, *(sorted(lines) if call.name in NEWEST_FIRST else lines)]


def _diff(old: list[str], new: list[str]) -> Iterator[str]:
    yield from list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]


def _verdict(passed: bool | None) -> str:  # a fact
    return "did not run" if passed is None else "passed" if passed else "failed"


def _ending(session: RecordedSession) -> str:
    return f"{session.status} ({session.reason})" if session.reason else str(session.status)


def renewed(then: Recording, now: Recording) -> Recording:
    """The recording as it went this time: the same requests to the same models, today's answers."""
    pairs = zip(then.sessions, now.sessions, strict=False)
    sessions = tuple(_renewed(old, new) for old, new in pairs)
    return evolve(then, base=now.base, sessions=sessions)


def _renewed(then: RecordedSession, now: RecordedSession) -> RecordedSession:
    own = [call for call in now.calls if not is_of_replay(call)]
    calls = (evolve(old, blocks=new.blocks) for old, new in zip(then.calls, own, strict=False))
    return evolve(now, parent=then.parent, calls=tuple(calls))
