"""Where a redirection goes, and where the script stands when it does (after `cd`)."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from harness_batch.permissions.paths import path_asks
from harness_batch.permissions.shell_words import Word
from harness_batch.rules import Ask

Places: TypeAlias = frozenset[Path] | None
"""Folders in which the script may stand at a point; None when that cannot be told."""

MAX_PLACES = 8

_DEVICES = re.compile(r"/dev/(null|zero|full|stdin|stdout|stderr|tty|fd/\d+)")
_DUPLICATE = re.compile(r"\d+-?|-")
_NETWORK = re.compile(r"/dev/+(\.?/+)*(tcp|udp)(/|$)")
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", ">&", "<>"))


@frozen
class ShellPlace:
    """Where a command would run: workspace, folder in it, and the private temporary folder.

    All absolute and resolved. Redirections into `tmp` need no permission.
    """

    root: Path
    cwd: Path
    tmp: Path | None = None


@frozen
class Redirect:
    """One redirection: `>`, `<`, ..., and its target."""

    operator: str
    target: Word


def redirect_asks(redirect: Redirect, places: Places, place: ShellPlace) -> Iterable[Ask]:
    """`edit` for what is written, `read` for what is read; nothing for devices and duplicates."""
    target, operator = redirect.target, redirect.operator
    permission = "edit" if operator in _WRITES else "read"
    if target.value is None:
        if not target.shown.startswith(("<(", ">(")):
            yield from _unknown(redirect, f"`{target.shown}` is known only when it runs")
        return
    if operator.endswith("&") and _DUPLICATE.fullmatch(target.value):
        return
    if _NETWORK.match(target.value):
        yield from _unknown(redirect, "bash opens a network connection for it")
        return
    if _DEVICES.fullmatch(target.value):
        return
    if places is None and not target.value.startswith("/"):
        yield from _unknown(redirect, "it comes after a `cd` whose effect cannot be told")
        return
    for path in sorted({resolved(base, target.value) for base in places or {place.cwd}}):
        if operator == "<>":
            yield from _asks("read", path, place)
        yield from _asks(permission, path, place)


def _unknown(redirect: Redirect, why: str) -> Iterable[Ask]:
    """A target that could lie anywhere: only rules for exactly `*`, for bash too, allow it."""
    shown = redirect.target.shown
    yield Ask("edit" if redirect.operator in _WRITES else "read", shown, why)
    yield Ask("bash", f"{redirect.operator} {shown}", why)


def _asks(permission: str, path: Path, place: ShellPlace) -> Iterable[Ask]:
    if place.tmp is not None and path.is_relative_to(place.tmp):
        return ()
    return path_asks(permission, path, place.root)


def resolved(base: Path, target: str) -> Path:
    """The target as the kernel would open it: links followed, `..` after that."""
    try:
        return (base / target).resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL, a name too long
        return Path(base / target.replace("\0", "?"))


def after_cd(places: Places, target: str) -> Places:
    """Where `cd target` leads from each of the places, as bash sees it: `..` undoes a link."""
    if not target.startswith("/") and places is None:
        return None
    return frozenset(Path(os.path.normpath(base / target)) for base in places or {Path("/")})


def either(left: Places, right: Places) -> Places:
    """One or the other happened."""
    if left is None or right is None or len(left | right) > MAX_PLACES:
        return None
    return left | right
