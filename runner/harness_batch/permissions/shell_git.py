"""The command line of git: what it does, which of its options and settings run other programs."""

import re
from collections.abc import Sequence
from itertools import pairwise

from harness_batch.permissions.shell_names import words as table
from harness_batch.permissions.shell_risks import Risk, long_options, risky_option
from harness_batch.permissions.shell_source import Unreadable
from harness_batch.permissions.shell_words import Word

_GIT_LONG = long_options(
    "output ext-diff textconv upload-pack receive-pack exec extcmd open-files-in-pager template"
    " config config-env exec-path git-dir work-tree separate-git-dir output-directory tool"
    " help web"
)
_GIT_SUBCOMMANDS = table(
    "bisect submodule filter-branch difftool mergetool send-email instaweb p4 svn hook daemon"
    " credential fast-import maintenance upload-pack receive-pack shell http-backend help"
    " cvsserver archimport cvsimport quiltimport request-pull gui citool alias scalar"
)
_GIT_LETTERS = {
    "grep": "O",
    "rebase": "x",
    "format-patch": "o",
    "archive": "o",
    "clone": "cu",
    "fetch": "u",
    "ls-remote": "u",
}
MESSAGED = table("commit tag merge stash notes")
MESSAGE = re.compile(r"-[aqsn]*m|--message")
"""Options whose next word is text, whatever it begins with."""
GIT_VALUES = table("-C -c --git-dir --work-tree --namespace --config-env --attr-source")
"""Options of git itself that take the next word."""

_GIT_HARMLESS = re.compile(
    r"(user\.(name|email)|color\.\w+|advice\.\w+|core\.(quotepath|autocrlf|safecrlf|abbrev)"
    r"|init\.defaultbranch|(commit|tag)\.gpgsign|diff\.(algorithm|renames?|context|noprefix)"
    r"|log\.\w+|pull\.rebase|merge\.conflictstyle|gc\.auto|status\.\w+)=[^!]*"
    r"|core\.pager=(cat)?",
    re.IGNORECASE | re.ASCII,
)
"""Settings that cannot make git run anything."""


def git_options(words: Sequence[Word]) -> tuple[str, ...]:
    """Risky options of git and of its subcommand, and risky subcommands."""
    found: list[str] = []
    place = 1
    while place < len(words):
        value = words[place].value or ""
        if not value.startswith("-"):
            break
        option = value.partition("=")[0]
        found += [option] if option[:2] in ("-c", "--") and option != "--no-pager" else []
        place += 2 if value in GIT_VALUES else 1
    rest = [word.value or "" for word in words[place:]]
    subcommand = rest[0] if rest else ""
    if subcommand in _GIT_SUBCOMMANDS:
        found.append(subcommand)
    risk = Risk(_GIT_LETTERS.get(subcommand, ""), _GIT_LONG)
    found += [risky for word in rest[1:] if (risky := risky_option(word, risk))]
    return tuple(dict.fromkeys(found))


def git_subcommand(words: Sequence[Word]) -> str | None:
    """What `git ...` does, past its global options; None when there is nothing or it is unknown."""
    place = 1
    while place < len(words) and (words[place].value or "").startswith("-"):
        place += 2 if words[place].value in GIT_VALUES else 1
    return words[place].value if place < len(words) else None


def git_scripts(words: Sequence[Word]) -> tuple[str, ...]:
    """What `git -c alias.x='!command'` runs; of other settings only harmless ones pass.

    Raises: Unreadable for a setting that is not known to be harmless.
    """
    scripts: list[str] = []
    for before, word in pairwise(words):
        value = word.value
        if before.value == "-c":
            key, _, setting = (value or "").partition("=")
            if key.lower().startswith("alias.") and setting.startswith("!"):
                scripts.append(setting[1:])
            elif not _GIT_HARMLESS.fullmatch(value or ""):
                raise Unreadable(f"`git -c {word.shown}` can make git run other programs")
        elif value is None or (not value.startswith("-") and before.value not in GIT_VALUES):
            break
    return tuple(scripts)
