"""How messages to people name things: a value, its place in a file, the word that was meant."""

import json
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches

_WORD = re.compile(r"[\w$-]+")
_LONGEST_QUOTE = 40


def nearest(word: str, known: Collection[str]) -> str:
    """`; did you mean ...?` or nothing: the end of a message about an unknown word."""
    lowered = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean `{lowered[close[0]]}`?" if close else ""


def dotted(path: Sequence[str | int]) -> str:
    """The path as people write it: `checks[0].run`, `permissions.bash["git *"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _WORD.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def kind(value: object) -> str:
    """The value in words: what people wrote, not the type of a programming language."""
    match value:
        case None | bool():
            words = json.dumps(value)
        case int() | float():
            words = f"the number {value}"
        case str() if not value:
            words = "an empty text"
        case str():
            short = value if len(value) <= _LONGEST_QUOTE else value[: _LONGEST_QUOTE - 3] + "..."
            words = f"the text {json.dumps(short, ensure_ascii=False)}"
        case list():
            words = "a list"
        case _:
            words = "a mapping"
    return words
