"""One simple command as asks: the command itself, what it wraps, and where `cd` leads."""

import re
from collections.abc import Callable, Sequence

from attrs import Factory, define, frozen

from harness_batch.permissions.paths import path_asks
from harness_batch.permissions.shell_builtins import builtin_doubt
from harness_batch.permissions.shell_git import git_subcommand
from harness_batch.permissions.shell_names import CONTROL, EVALUATING, RESERVED
from harness_batch.permissions.shell_options import doubt_about, options_of
from harness_batch.permissions.shell_redirects import Places, ShellPlace, after_cd, either, resolved
from harness_batch.permissions.shell_source import Unreadable
from harness_batch.permissions.shell_words import Word
from harness_batch.permissions.shell_wrappers import wrapped
from harness_batch.rules import Ask

MAX_WRAPPERS = 8

_PROGRAM = re.compile(r"[A-Za-z0-9_./+@%:,\[\]^-]+")
_RUNNERS_OWN = re.compile(r"push|remote(-\w+)?|config|send-pack|http-push")
_SAME_SHELL = frozenset(("builtin", "command"))


@define
class Sink:
    """What was gathered so far."""

    asks: list[Ask] = Factory(list)
    refusals: list[str] = Factory(list)


@define
class Standing:
    """Where the script stands; `sure` is where it stands if the last command succeeded."""

    place: ShellPlace
    places: Places
    sure: Places


@frozen
class Shell:
    """What a simple command acts upon: what it asks, where it stands, how scripts are read."""

    sink: Sink
    standing: Standing
    script: Callable[[str], None]
    """Reads the argument of `sh -c`."""


def command_asks(
    words: Sequence[Word], shell: Shell, doubt: str | None = None, level: int = 0
) -> None:
    """Appends the asks of one command and of all that it runs.

    `doubt` is a reason found outside the words; level counts the wrappers around it.
    """
    options: tuple[str, ...] = ()
    passing = False
    try:
        program = _program(words[0])
        passing = _act(program, words, shell, level)
        options = options_of(program, words)
        doubt = doubt or doubt_about(program, words) or builtin_doubt(program, words)
    except Unreadable as why:
        doubt = doubt or str(why)
    pattern = " ".join(word.shown for word in words)
    shell.sink.asks.append(Ask("bash", pattern, doubt, options, passing and doubt is None))


def _program(word: Word) -> str:
    """The program's own name. Raises: Unreadable when it is no plain, literal name."""
    if word.value is None:
        raise Unreadable(f"`{word.shown}` as a command is known only when it runs")
    if not _PROGRAM.fullmatch(word.value) or word.value in RESERVED:
        raise Unreadable(f"`{word.shown}` is no plain name of a command")
    program = word.value.rpartition("/")[2]
    if program in EVALUATING:
        raise Unreadable(f"`{program}` {EVALUATING[program]}")
    return program


def _act(program: str, words: Sequence[Word], shell: Shell, level: int) -> bool:
    """Asks for what the command runs; is the command itself harmless?"""
    bare = words[0].value == program
    if program in ("cd", "pushd", "popd"):
        return _move(program, words, shell)
    if program == "git" or program.startswith("git-"):
        _git(program, words, shell.sink)
    inside = wrapped(program, words)
    if (inside.commands or inside.scripts) and level >= MAX_WRAPPERS:
        raise Unreadable("it wraps commands in commands too deeply")
    for command in inside.commands:
        before = shell.standing.places
        command_asks(command, shell, level=level + 1)
        if program not in _SAME_SHELL:
            shell.standing.places = shell.standing.sure = before
    for script in inside.scripts:
        shell.script(script)
    if program in CONTROL or (program == "exec" and len(words) == 1):
        return bare
    return bare and (inside.harmless or program in ("test", "[", "set", "unset"))


def _git(program: str, words: Sequence[Word], sink: Sink) -> None:
    subcommand = git_subcommand(words) if program == "git" else program.removeprefix("git-")
    if subcommand is not None and _RUNNERS_OWN.fullmatch(subcommand):
        sink.refusals.append(git_refusal(subcommand))


def git_refusal(subcommand: str) -> str:
    """What the model reads instead of an answer of git."""
    return (
        f"Refused: `git {subcommand}` is not available, whatever the rules say. The runner takes "
        "your changes from the files and does everything with remotes and settings itself; "
        "leave the work in the worktree (add, commit and stash are fine)."
    )


def _move(program: str, words: Sequence[Word], shell: Shell) -> bool:
    """`cd`: outside the workspace it needs `external_directory`; inside it is harmless."""
    standing = shell.standing
    arguments = [word for word in words[1:] if word.value not in ("-L", "--")]
    target = arguments[0].value if len(arguments) == 1 else None
    places = after_cd(standing.places, target) if target and target[0] not in "-+" else None
    if program == "cd" and places is not None:
        standing.sure = places
        standing.places = either(standing.places, places)
    else:
        standing.sure = standing.places = None
    if places is None:
        text = " ".join(word.shown for word in words)
        raise Unreadable(f"where `{text}` leads is known only when it runs")
    root, tmp = standing.place.root, standing.place.tmp
    outside = sorted(
        path
        for path in (resolved(place, ".") for place in places)
        if not path.is_relative_to(root) and not (tmp and path.is_relative_to(tmp))
    )
    for path in outside:
        asks = path_asks("bash", path, root)
        shell.sink.asks.extend(ask for ask in asks if ask.permission != "bash")
    return not outside
