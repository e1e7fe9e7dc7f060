"""What a known program's arguments make of it: risky options, and what cannot be judged.

`prog *` does not cover risky options: a rule names the option, or is exactly `*`.
"""

import re
from collections.abc import Sequence

from harness_batch.permissions.shell_git import MESSAGE, MESSAGED, git_options, git_subcommand
from harness_batch.permissions.shell_risks import RISKS, risky_option
from harness_batch.permissions.shell_words import Word

_AWK_RUNS = re.compile(r"system|getline|[|>@]|printf?\s*>|ENVIRON|extension")
_SED_FLAGS = re.compile(
    r"-[nErzsu]*(i.*)?|--(quiet|silent|regexp-extended|null-data|separate|unbuffered|posix|debug"
    r"|sandbox|version|help|in-place(=.*)?)"
)
"""Options of sed that take no further word; `-i` is a risky one and judged as such."""
_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\[^\n])*/I?)"
_SED_SAFE = re.compile(
    r"(?:[\s;{}]*+"
    rf"(?:{_SED_ADDRESS}(?:,(?:[+~]?\d+|{_SED_ADDRESS}))?\s*+!?\s*+)?"
    r"(?:[pdqQDPNnGgHhxlF=]|s([/|#,:@!])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1"
    r"[gpI0-9]*+)[ \t]*+(?=[;}\n]|\Z))*+[\s;{}]*"
)
"""Addresses with commands that neither run nor write; possessive, so that nothing backtracks."""


def options_of(program: str, words: Sequence[Word]) -> tuple[str, ...]:
    """The risky options, as they are spelled (a value after `=` cut off)."""
    if program == "git":
        return git_options(words)
    risk = RISKS.get(program)
    if risk is None:
        return ()
    found = [risky_option(word.value, risk) for word in words[1:] if word.value is not None]
    if risk.bundled and len(words) > 1 and words[1].value and words[1].value[0] != "-":
        first = words[1].value
        found += [first] if set(first) & set(risk.letters) and "/" not in first else []
    return tuple(dict.fromkeys(option for option in found if option))


def doubt_about(program: str, words: Sequence[Word]) -> str | None:
    """Why the arguments of such a program cannot be judged; None when they can."""
    loose = _loose(program, words) if program in RISKS or program == "git" else None
    if loose is not None:
        return (
            f"`{loose.shown}` could become an option of {program} that executes or writes"
            " (put `--` before it, or begin it with `./`)"
        )
    if program == "sed":
        return _sed_doubt(words)
    if program in ("awk", "gawk", "mawk", "nawk"):
        return _awk_doubt(words)
    return None


def _loose(program: str, words: Sequence[Word]) -> Word | None:
    """The first word that could turn out to be an option."""
    message = program == "git" and git_subcommand(words) in MESSAGED
    place = 1
    while place < len(words):
        word = words[place]
        if word.loose:
            return word
        if word.value == "--" and place > 1 and program not in ("find", "tar"):
            return None
        if message and place + 1 < len(words) and MESSAGE.fullmatch(word.value or ""):
            place += 0 if words[place + 1].split else 1  # its text, whatever that begins with
        place += 1
    return None


def _sed_doubt(words: Sequence[Word]) -> str | None:
    """Scripts of sed may execute (`e`), write (`w`) and read (`r`) files: only plain ones pass."""
    scripts: list[str | None] = []
    operands: list[str | None] = []
    place = 1
    while place < len(words):
        value = words[place].value
        if value in ("-e", "--expression"):
            place += 1
            scripts.append(words[place].value if place < len(words) else None)
        elif value in ("-f", "--file"):  # a risky option, judged as such
            place += 1
            scripts.append("")
        elif value is not None and value.startswith("--expression="):
            scripts.append(value.partition("=")[2])
        elif value is None or not value.startswith("-"):
            operands.append(value)
        elif not _SED_FLAGS.fullmatch(value):
            return f"`{value}` of sed is not read here (write `-e` as a word of its own)"
        place += 1
    for script in scripts or operands[:1]:
        if script is None or not _SED_SAFE.fullmatch(script):
            return "a sed script other than plain addresses with s, p, d, q can execute and write"
    return None


def _awk_doubt(words: Sequence[Word]) -> str | None:
    """Programs of awk may call system(), open pipes and write files."""
    if any(word.value is None or _AWK_RUNS.search(word.value) for word in words[1:]):
        return "an awk program that calls system or getline, pipes, redirects or is not literal"
    return None
