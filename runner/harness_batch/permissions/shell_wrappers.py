"""Commands that run their arguments: what is in `timeout 5 ...`, `find -exec`, `sh -c '...'`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from harness_batch.permissions.shell_git import git_scripts
from harness_batch.permissions.shell_names import SHELLS, steers
from harness_batch.permissions.shell_source import Unreadable
from harness_batch.permissions.shell_words import Word, is_name, literal


@frozen
class Wrapped:
    """What a command runs besides itself."""

    commands: tuple[tuple[Word, ...], ...] = ()
    scripts: tuple[str, ...] = ()
    harmless: bool = False
    """All it does is run them, so that no rule need name the wrapper."""


@frozen
class Options:
    """How far a wrapper's own arguments reach."""

    flags: str = ""
    """Short options without a value."""
    valued: str = ""
    """Short options with a value, attached or the next word."""
    attached: str = ""
    """Short options whose value, if any, is the rest of the word."""
    long_flags: tuple[str, ...] = ()
    long_valued: tuple[str, ...] = ()
    """Long options with `=value` or the next word."""
    operands: int = 0
    """Words of its own before the command."""
    harmless: bool = True


_PLAIN: Mapping[str, Options] = {
    "timeout": Options(
        flags="v",
        valued="ks",
        long_flags=("--preserve-status", "--foreground", "--verbose"),
        long_valued=("--kill-after", "--signal"),
        operands=1,
    ),
    "nice": Options(flags="0123456789", valued="n", long_valued=("--adjustment",)),
    "ionice": Options(
        flags="t", valued="cn", long_flags=("--ignore",), long_valued=("--class", "--classdata")
    ),
    "nohup": Options(),
    "setsid": Options(flags="cfw", long_flags=("--ctty", "--fork", "--wait")),
    "stdbuf": Options(valued="ioe", long_valued=("--input", "--output", "--error")),
    "builtin": Options(),
    "exec": Options(flags="cl", valued="a"),
    "sudo": Options(
        flags="EnHSPkAb",
        valued="ugCpThr",
        long_flags=("--preserve-env", "--non-interactive"),
        long_valued=("--user", "--group"),
        harmless=False,
    ),
    "doas": Options(flags="nL", valued="uC", harmless=False),
    "taskset": Options(
        flags="a",
        valued="c",
        long_flags=("--all-tasks",),
        long_valued=("--cpu-list",),
        operands=1,
        harmless=False,
    ),
    "busybox": Options(harmless=False),
    "toybox": Options(harmless=False),
    "xargs": Options(
        flags="0rtpxo",
        valued="nPILsdaE",
        attached="ile",
        long_flags=("--null", "--no-run-if-empty", "--verbose", "--exit", "--replace"),
        long_valued=(
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--delimiter",
            "--arg-file",
            "--max-chars",
        ),
    ),
}

_FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_FOUND = Word(None, "{}", loose=True, split=True)
_UNDO = frozenset(("n", "L", "l", "--max-args", "--max-lines"))
_SHELL_FLAGS = frozenset("euxcfhnCv")

Reader: TypeAlias = Callable[[Sequence[Word]], Wrapped]


def wrapped(program: str, words: Sequence[Word]) -> Wrapped:
    """What the command runs. Raises: Unreadable when the wrapper's own arguments are unknown."""
    reader = _READERS.get(program)
    if reader is not None:
        return reader(words)
    if program in SHELLS:
        return _shell(words)
    options = _PLAIN.get(program)
    if options is None:
        return Wrapped()
    _, inner = _split(words, options)
    return Wrapped((inner,) if inner else (), harmless=options.harmless and bool(inner))


def _split(
    words: Sequence[Word], options: Options
) -> tuple[list[tuple[str, str]], tuple[Word, ...]]:
    """The wrapper's own options with their values, and the words behind them and its operands."""
    own: list[tuple[str, str]] = []
    place = 1
    while place < len(words):
        value = _known(words, place)
        if value == "--":
            place += 1
            break
        if not value.startswith("-") or value == "-":
            break
        place += 1
        for name, attached in _letters(words[0].shown, value, options):
            own.append((name, attached if attached is not None else _known(words, place)))
            place += attached is None
    for operand in range(place, min(place + options.operands, len(words))):
        _known(words, operand)
    return own, tuple(words[place + options.operands :])


def _letters(program: str, option: str, options: Options) -> Iterator[tuple[str, str | None]]:
    """Each option in a word with its value; None when that is the next word."""
    name, equals, value = option.partition("=")
    if option.startswith("--"):
        if name in options.long_flags or (equals and name in options.long_valued):
            yield name, value
            return
        if name in options.long_valued:
            yield name, None
            return
    for place, letter in enumerate(option[1:], 2):
        rest = option[place:]
        if letter in options.flags:
            yield letter, ""
        elif letter in options.valued:
            yield letter, rest or None
            return
        elif letter in options.attached:
            yield letter, rest
            return
        else:
            raise Unreadable(
                f"`{option}` of {program} is not known here, so what it runs is not either"
            )


def _known(words: Sequence[Word], place: int) -> str:
    if place >= len(words):
        raise Unreadable(f"{words[0].shown} lacks a word, so what it runs is not known")
    value = words[place].value
    if value is None:
        raise Unreadable(f"`{words[place].shown}` stands where {words[0].shown} is told what to do")
    return value


def assignment(text: str) -> str | None:
    """The name in `NAME=value`; None when it is none. Raises: Unreadable when it steers."""
    name, equals, _ = text.partition("=")
    if not equals or not is_name(name.removesuffix("+")):
        return None
    name = name.removesuffix("+")
    if steers(name):
        raise Unreadable(f"setting {name} can change what runs")
    return name


def _behind_assignments(words: Sequence[Word], place: int) -> tuple[Word, ...]:
    while place < len(words):
        value = words[place].value
        text = words[place].shown if value is None else value
        if assignment(text) is None:
            break
        place += 1
    return tuple(words[place:])


def _env(words: Sequence[Word]) -> Wrapped:
    options = Options(
        flags="i0v",
        valued="u",
        long_flags=("--ignore-environment", "--null", "--debug"),
        long_valued=("--unset",),
    )
    _, rest = _split(words, options)
    if rest and rest[0].value == "-":
        rest = rest[1:]
    inner = _behind_assignments(rest, 0)
    return Wrapped((inner,) if inner else (), harmless=bool(inner))


def _time(words: Sequence[Word]) -> Wrapped:
    """The reserved word: assignments may follow it. `-p` and `--` are its only options."""
    place = 1
    while place < len(words) and words[place].value in ("-p", "--"):
        place += 1
    if place < len(words) and (words[place].value or "").startswith("-"):
        raise Unreadable(f"`{words[place].shown}` of time is not known here")
    inner = _behind_assignments(words, place)
    return Wrapped((inner,) if inner else (), harmless=bool(inner))


def _command(words: Sequence[Word]) -> Wrapped:
    if len(words) > 1 and words[1].value in ("-v", "-V"):
        return Wrapped()
    _, inner = _split(words, Options(flags="p"))
    return Wrapped((inner,) if inner else (), harmless=bool(inner))


def _xargs(words: Sequence[Word]) -> Wrapped:
    """What it reads comes behind the words it is given, or in place of the string of `-I`."""
    own, inner = _split(words, _PLAIN["xargs"])
    if not inner:
        return Wrapped(((literal("echo"), _FOUND),), harmless=True)
    marks = [value or "{}" for name, value in own if name in ("I", "i", "--replace")]
    swapped = tuple(
        _FOUND if any(mark in (word.value or word.shown) for mark in marks) else word
        for word in inner
    )
    # Without a mark, or when `-n` or `-L` undoes it, what is read comes last.
    behind = () if swapped != inner and not any(name in _UNDO for name, _ in own) else (_FOUND,)
    return Wrapped(((*swapped, *behind),), harmless=True)


def _find(words: Sequence[Word]) -> Wrapped:
    commands: list[tuple[Word, ...]] = []
    place = 1
    while place < len(words):
        if words[place].value in _FIND_RUNS:
            end = place + 1
            while end < len(words) and not _ends(words, end):
                end += 1
            inner = words[place + 1 : end]
            commands.append(
                tuple(_FOUND if "{}" in (word.value or word.shown) else word for word in inner)
            )
            place = end
        place += 1
    return Wrapped(tuple(command for command in commands if command))


def _ends(words: Sequence[Word], place: int) -> bool:
    """Where `-exec` ends: at `;`, or at `+` right behind `{}`."""
    value = words[place].value
    return value == ";" or (value == "+" and words[place - 1].value == "{}")


def _shell(words: Sequence[Word]) -> Wrapped:
    """`sh -c SCRIPT`: the script counts; a shell without `-c` runs what no one can read here."""
    place, script = 1, False
    while place < len(words):
        value = words[place].value
        if value is None:
            raise Unreadable(f"`{words[place].shown}` could be an option of a shell")
        if not value.startswith("-") or len(value) < 2 or set(value[1:]) - _SHELL_FLAGS:
            break
        script = script or "c" in value
        place += 1
    if not script:
        return Wrapped()
    text = words[place].value if place < len(words) else None
    if text is None or text[:1] in ("-", "+"):
        raise Unreadable("the script of a shell that is started is not literal")
    return Wrapped(scripts=(text,), harmless=True)


def _git(words: Sequence[Word]) -> Wrapped:
    return Wrapped(scripts=git_scripts(words))


_READERS: Mapping[str, Reader] = {
    "env": _env,
    "time": _time,
    "command": _command,
    "xargs": _xargs,
    "find": _find,
    "git": _git,
}

WRAPPERS = frozenset(_PLAIN) | frozenset(_READERS) | SHELLS
"""Programs whose arguments are commands."""
