"""A shell command as the things the rules are asked: every simple command, redirection and `cd`.

The door of the shell policy. It fails closed: what bash might read otherwise than the grammar
does, or what only the running shell knows, becomes an ask that only a rule for exactly `*`
allows. It decides nothing itself, and it is policy for the model, not a boundary.
"""

import re
from collections.abc import Iterable

from attrs import evolve

from harness_batch.permissions.paths import path_asks
from harness_batch.permissions.shell_commands import Sink, git_refusal
from harness_batch.permissions.shell_flow import walk_script
from harness_batch.permissions.shell_redirects import ShellPlace
from harness_batch.rules import Ask

__all__ = ["ShellPlace", "asks_of", "refusal"]

MAX_BYTES = 16_384
"""Longer commands are not analysed; files are written with the file tools."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_REFUSED = re.compile(r"\bgit\b[^\n;|&]{0,200}\b(push|remote|config)\b")


def asks_of(command: str, place: ShellPlace) -> tuple[Ask, ...]:
    """What must be allowed before bash may run the command in `place`, without repetition.

    There is always at least one ask for `bash` that an allow must match.
    """
    return tuple(dict.fromkeys(_asks(command, place, Sink())))


def refusal(command: str, place: ShellPlace) -> str | None:
    """Why no rule can allow the command: the runner does git's outward part and owns `.git`."""
    sink = Sink()
    asks = tuple(_asks(command, place, sink))
    if sink.refusals:
        return sink.refusals[0]
    for ask in asks:
        if ask.permission == "edit" and ".git" in ask.pattern.lower().split("/"):
            return f"Refused: `{ask.pattern}` lies in git's own folder, which the runner keeps."
    found = _REFUSED.search(command) if any(ask.undecidable for ask in asks) else None
    return git_refusal(found[1]) if found else None


def _asks(command: str, place: ShellPlace, sink: Sink) -> Iterable[Ask]:
    if not place.cwd.is_relative_to(place.root):
        yield from (a for a in path_asks("bash", place.cwd, place.root) if a.permission != "bash")
    doubt = _doubt(command)
    if doubt is not None:
        yield Ask("bash", command.strip(), doubt)
    if not _too_long(command):
        walk_script(command, place, sink)
    bash = [ask for ask in sink.asks if ask.permission == "bash"]
    if bash and all(ask.passing for ask in bash):
        yield from (evolve(ask, passing=False) for ask in sink.asks)
    else:
        yield from sink.asks
    if doubt is None and not bash:
        yield Ask("bash", command.strip())


def _too_long(command: str) -> bool:
    return len(command.encode(errors="replace")) > MAX_BYTES


def _doubt(command: str) -> str | None:
    """What is wrong with the text as a whole."""
    if _too_long(command):
        return f"it is longer than {MAX_BYTES} bytes"
    if _CONTROL.search(command):
        return "it holds control characters"
    if not command.isascii():
        return "it holds characters that are not ASCII (write such text with the file tools)"
    return None
