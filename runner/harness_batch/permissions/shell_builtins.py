"""Builtins that evaluate, assign or change the shell, and when their arguments are harmless."""

import re
from collections.abc import Sequence

from harness_batch.permissions.shell_names import CONTROL, SET_OPTIONS, steers
from harness_batch.permissions.shell_names import words as table
from harness_batch.permissions.shell_source import Unreadable
from harness_batch.permissions.shell_words import Word, is_name
from harness_batch.permissions.shell_wrappers import assignment

_DECLARES = table("export declare typeset local readonly")
_READ_OPTIONS = re.compile(r"-[rse]*[pdntNu]?|-[rse]+")
_READ_VALUED = re.compile(r"-[rse]*[pdntNu]")
_NUMBERS = frozenset(("$?", "$#", '"$?"', '"$#"'))
"""Expansions that are always a number."""
_UNARY = re.compile(r"-[abcdefghkLnNoOpPrsStuwxGz]")
_BINARY = table("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef")


def builtin_doubt(program: str, words: Sequence[Word]) -> str | None:
    """Why a builtin's arguments could make it do more than its name says; None when not."""
    try:
        if program in CONTROL:
            _literal(words, "changes how the script goes on")
        elif program == "set":
            _set(words)
        elif program in ("test", "["):
            _test([word for word in words[1:] if word.value != "]"])
        elif program == "read":
            _read(words)
        elif program in _DECLARES or program == "unset":
            _declare(words)
        elif program in ("printf", "wait"):
            _first(words)
    except Unreadable as why:
        return str(why)
    return None


def _literal(words: Sequence[Word], effect: str) -> None:
    for word in words[1:]:
        if word.value is None and word.shown not in _NUMBERS:
            raise Unreadable(f"`{words[0].shown} {word.shown}` {effect}")


def _first(words: Sequence[Word]) -> None:
    """`printf -v` and `wait -p` assign, subscripts included."""
    if len(words) > 1 and (words[1].loose or (words[1].value or "")[:2] in ("-v", "-p")):
        raise Unreadable(f"`{words[0].shown} {words[1].shown}` can evaluate what it is given")


def _set(words: Sequence[Word]) -> None:
    for word in words[1:]:
        if word.value is None or not SET_OPTIONS.fullmatch(word.value):
            raise Unreadable(f"`set {word.shown}` changes how the shell reads commands")


def _declare(words: Sequence[Word]) -> None:
    """`export A=b` as words: names and assignments only, flags that mean no evaluation."""
    for word in words[1:]:
        text = word.value if word.value is not None else word.shown
        if text in ("-x", "-r", "-g", "-p"):
            continue
        if assignment(text) is None and (not is_name(text) or steers(text)):
            raise Unreadable(f"`{words[0].shown} {word.shown}` can change what runs, or evaluates")


def _read(words: Sequence[Word]) -> None:
    """`read` assigns: only plain names that steer nothing."""
    place = 1
    while place < len(words):
        value = words[place].value
        if value is None:
            raise Unreadable(f"`read {words[place].shown}` is known only when it runs")
        if value.startswith("-"):
            if not _READ_OPTIONS.fullmatch(value):
                raise Unreadable(f"`read {value}` is not read here")
            place += 2 if _READ_VALUED.fullmatch(value) else 1
            continue
        if not is_name(value) or steers(value):
            raise Unreadable(f"`read {value}` can change what runs, or evaluates")
        place += 1


def _test(words: Sequence[Word]) -> None:
    """`test` may not be handed its operators by variables: `-v 'a[$(x)]'` runs x."""
    values = ["0" if word.shown in _NUMBERS else word.value for word in words]
    if any(word.split and word.shown not in _NUMBERS for word in words):
        raise Unreadable("an unquoted expansion in a test can become an operator (quote it)")
    if any(value in ("-v", "-R") for value in values):
        raise Unreadable("a test for a variable evaluates its subscript")
    if None not in values:
        return
    while values and values[0] == "!":
        values = values[1:]
    unary = len(values) == 2 and values[0] is not None and _UNARY.fullmatch(values[0])
    binary = len(values) == 3 and values[1] in _BINARY
    if not unary and not binary and len(values) != 1:
        raise Unreadable("a test whose operators are not all literal")
