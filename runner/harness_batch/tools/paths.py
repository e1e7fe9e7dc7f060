"""A model's path becomes one place on the disk, or a refusal that says how to mend it.

Links are followed here, so what is asked of the rules is where the file really lies. Opening is
beneath.py's work, which follows no link at all: a path that changes in between is refused there.
"""

import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from attrs import frozen

from harness_batch.permissions.paths import path_asks
from harness_batch.rules import Ask
from harness_batch.tools.protocol import ToolContext, ToolResult

MAX_PATH = 4096
"""Bytes; PATH_MAX of Linux."""
MAX_NAME = 255
"""Bytes of one component; NAME_MAX of Linux."""
KERNEL_FOLDERS = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Windows into processes and devices; no rule opens them, as the runner itself is seen there."""


@frozen
class Refused:
    """Why a file cannot be had, in words for the model."""

    reason: str

    def result(self) -> ToolResult:
        """As the outcome of a call."""
        return ToolResult(output=self.reason, title="refused", status="error")


@frozen
class Place:
    """Where a model's path leads: absolute, every link followed."""

    path: Path
    root: Path
    """The workspace."""

    @property
    def inside(self) -> bool:
        """Whether it lies in the workspace (or is it)."""
        return self.path.is_relative_to(self.root)

    @property
    def shown(self) -> str:
        """Relative to the workspace, or absolute outside."""
        text = str(self.path.relative_to(self.root)) if self.inside else str(self.path)
        return printable(text)

    @property
    def base(self) -> Path:
        """The folder whose descriptor every open starts from."""
        return self.root if self.inside else Path("/")

    @property
    def parts(self) -> tuple[str, ...]:
        """Names from `base` down."""
        return self.path.relative_to(self.base).parts

    def asks(self, permission: str) -> tuple[Ask, ...]:
        """What the rules must allow."""
        return path_asks(permission, self.path, self.root)


def printable(text: str) -> str:
    r"""File names need not be UTF-8; odd bytes become \xNN."""
    raw = os.fsencode(text) if not _has_true_surrogate(text) else text.encode(errors="replace")
    return raw.decode(errors="backslashreplace")


def locate(text: str, context: ToolContext) -> Place | Refused:
    """Follow `text` from the session's folder. Looks at the disk, opens nothing."""
    refusal = _bad_spelling(text)
    if refusal is not None:
        return Refused(refusal)
    try:
        path = Path(os.path.realpath(context.cwd / text))
    except (OSError, ValueError) as error:
        return Refused(f"{text!r} cannot be resolved: {error}")
    place = Place(path, context.root)
    if not place.inside and any(path.is_relative_to(folder) for folder in KERNEL_FOLDERS):
        return Refused(f"{text!r} leads into /{path.parts[1]}, which file tools never touch.")
    below = place.parts
    if any(is_git_name(name) for name in below):
        return Refused(_git_refusal(text))
    if any(len(os.fsencode(name)) > MAX_NAME for name in below):
        return Refused(f"a name in the path is longer than {MAX_NAME} bytes; use a shorter one.")
    return place


def asks_for(text: str, permission: str, context: ToolContext) -> Sequence[Ask] | ToolResult:
    """`Tool.asks` of a tool that touches one path."""
    match locate(text, context):
        case Refused() as refused:
            return refused.result()
        case Place() as place:
            return place.asks(permission)


def admitted(text: str, permission: str, context: ToolContext) -> Place | Refused:
    """The place again when the call runs; a link changed since the rules were asked is caught."""
    place = locate(text, context)
    if isinstance(place, Place) and not all(context.may(ask) for ask in place.asks(permission)):
        return Refused(f"{place.shown} is not permitted; the path changed since it was checked.")
    return place


def is_git_name(name: str) -> bool:
    r"""Whether some file system takes `name` for `.git` (git's own rules for HFS+ and NTFS).

    Case, trailing dots and blanks, alternate streams (`.git::$INDEX_ALLOCATION`), the short name
    `git~1`, and letters of no width are looked through; `.gitignore` and `.github` are not meant.
    """
    seen = "".join(
        letter
        for letter in unicodedata.normalize("NFKC", name)
        if unicodedata.category(letter) not in {"Cf", "Cc", "Mn"}
    )
    stem = seen.split(":", 1)[0].split("\\", 1)[0].rstrip(". ").casefold()
    return stem in {".git", "git~1"}


def _bad_spelling(text: str) -> str | None:
    """What no file name can hold, and what no rule can open."""
    if not text.strip():
        return "the path is empty; give one relative to the workspace."
    if "\0" in text:
        return "the path holds a NUL byte; remove it."
    if _has_true_surrogate(text):
        return "the path holds a lone surrogate, which no file name can; remove it."
    if len(text.encode(errors="surrogateescape")) > MAX_PATH:
        return f"the path is {len(text)} characters long; at most {MAX_PATH} bytes are possible."
    return _bad_name(text, PurePosixPath(text).parts)


def _bad_name(text: str, names: Sequence[str]) -> str | None:
    if names and names[0].startswith("~"):
        return (
            f"{text!r}: `~` is not expanded. Give the path relative to the workspace "
            "(`./~name` for a file whose name begins with a tilde)."
        )
    return _git_refusal(text) if any(is_git_name(name) for name in names) else None


def _git_refusal(text: str) -> str:
    return (
        f"{text!r} lies in git's own folder, which the runner manages; file tools leave it alone."
    )


def _has_true_surrogate(text: str) -> bool:
    """Surrogates other than those that stand for undecodable bytes."""
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return True
    return False
