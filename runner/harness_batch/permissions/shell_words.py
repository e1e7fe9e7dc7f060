"""One word of a shell command: its exact value where that can be told, how it is written where not.

Every leaf is checked against bash's own quoting rules, since a grammar that reads `a'b` otherwise
than bash does would make everything after it a guess. What does not check is `Unreadable`.
"""

import re
from collections.abc import Iterable, Sequence

from attrs import frozen
from tree_sitter import Node

from harness_batch.permissions.shell_source import SUBSTITUTIONS, Source, Unreadable

_ESCAPED = r"\\[^\n]"
_BARE = re.compile(
    rf"(?:[^\s\\'\"`$;|&()<>#]|{_ESCAPED})(?:[^\s\\'\"`$;|&()<>]|{_ESCAPED})*", re.ASCII
)
_QUOTED = re.compile(r"(?:[^\\\"`$]|\\[\s\S]|\$(?=[ \t\n]))*")
_ANSI = re.compile(r"\$'(?:[^\\'\n]|\\[nt\\'\"])*'")
_OPERAND = re.compile(r"[A-Za-z0-9_./:@%+=,*?^-]*")
_EXPANSION_OPERATORS = frozenset((":-", "-", ":+", "+", "%", "%%", "#", "##"))
_SIMPLE = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./*?\[\]{}~^!-][A-Za-z0-9_@%+=:,./*?\[\]{}~^!#-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_NESTED = 4
"""Expansions in the operand of an expansion."""


@frozen
class Word:
    """`value` is what the program gets; None when only the running shell knows."""

    value: str | None
    shown: str
    """As it stands in patterns: exact values quoted where a shell would need it, else source."""
    loose: bool = False
    """It can become several words, or one that begins with `-`."""
    split: bool = False
    """It can become several words."""


def read_word(node: Node, source: Source, nested: list[Node]) -> Word:
    """A word; substitutions in it are appended to `nested`. Raises: Unreadable."""
    if node.type == "word" and _SIMPLE.fullmatch(text := source.of(node)):
        return Word(text, text)
    pieces = _pieces(node, source, nested)
    bare = "".join(piece.bare for piece in pieces)
    braces = "{" in bare and ("," in bare or ".." in bare)
    splits = braces or any(piece.splits for piece in pieces)
    changes = splits or bare[:1] == "~" or "=~" in bare or ":~" in bare
    known = [piece.value for piece in pieces if piece.value is not None]
    if changes or len(known) != len(pieces):
        return Word(None, _utf8(source.of(node)), splits or pieces[0].opens, splits)
    value = _utf8("".join(known))
    if any(c in bare for c in "*?["):
        return Word(None, shown(value), loose=bare[0] in "*?[", split=True)
    return Word(value, shown(value))


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("latin-1").decode(errors="replace")


def shown(value: str) -> str:
    """An exact value in a pattern: bare when it is plain, else in single quotes."""
    if _PLAIN.fullmatch(value):
        return value
    return "'" + value.replace("'", "'\\''") + "'"


def literal(value: str) -> Word:
    """A word whose value is known."""
    return Word(value, shown(value))


@frozen
class _Piece:
    value: str | None
    bare: str
    """Its unquoted characters, others as `x`: globs, braces and tildes count only there."""
    splits: bool = False
    opens: bool = False
    """A word whose first piece this is could turn out to be an option."""


def _pieces(node: Node, source: Source, nested: list[Node]) -> Sequence[_Piece]:
    if node.type == "concatenation":
        return _concatenation(node, source, nested)
    return (_piece(node, source, nested),)


def _piece(node: Node, source: Source, nested: list[Node]) -> _Piece:
    text = source.of(node)
    match node.type:
        case "word" | "number" if not node.child_count:
            piece = _bare(text)
        case "raw_string":
            if len(text) < 2 or text.find("'", 1) != len(text) - 1:
                raise Unreadable("a quoted string in it cannot be read with certainty")
            piece = _Piece(text[1:-1], "x", opens=text[1] in "-'")
        case "string":
            piece = _string(node, source, nested)
        case "ansi_c_string" if _ANSI.fullmatch(text):
            value = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text[2:-1])
            piece = _Piece(value, "x", opens=True)
        case "simple_expansion" | "expansion" | "command_substitution" | "process_substitution":
            _expansion(node, source, nested)
            many = node.type != "process_substitution"
            piece = _Piece(None, "x", splits=many, opens=many)
        case "$" if text == "$":
            piece = _Piece("$", "$")
        case kind:
            raise Unreadable(f"it holds {kind.replace('_', ' ')}, which is not read here")
    return piece


def _bare(text: str) -> _Piece:
    """Unquoted text."""
    if not _BARE.fullmatch(text):
        raise Unreadable("a word in it cannot be read with certainty")
    opens = text.startswith("-") and "=" not in text
    if "\\" not in text:
        return _Piece(text, text, opens=opens)
    return _Piece(re.sub(r"\\(.)", r"\1", text), re.sub(r"\\.", "x", text), opens=opens)


def _concatenation(node: Node, source: Source, nested: list[Node]) -> Sequence[_Piece]:
    pieces: list[_Piece] = []
    place = node.start_byte
    children = source.children(node)
    for child in children:
        # `$` before another piece is `$"..."` or an expansion that the grammar did not see.
        if child.start_byte != place or (child.type == "$" and child != children[-1]):
            raise Unreadable("a word in it cannot be read with certainty")
        pieces.extend(_pieces(child, source, nested))
        place = child.end_byte
    return pieces


def _string(node: Node, source: Source, nested: list[Node]) -> _Piece:
    """A double-quoted string."""
    text = source.of(node)
    if len(text) < 2 or not text.startswith('"') or not text.endswith('"'):
        raise Unreadable("a quoted string in it cannot be read with certainty")
    values: list[str] = []
    dynamic = many = False
    for piece in between(node, source, node.start_byte + 1, node.end_byte - 1):
        if isinstance(piece, Node):
            _expansion(piece, source, nested)
            dynamic, many = True, many or "@" in source.of(piece)
        else:
            values.append(_unquoted(piece))
    opens = text[1] in '-"$`'
    return _Piece(None if dynamic else "".join(values), "x", splits=many, opens=opens)


def _unquoted(piece: str) -> str:
    """Text between double quotes as the program gets it. Raises: Unreadable."""
    last = piece.endswith("$") and not _odd(piece[:-1])
    if not _QUOTED.fullmatch(piece[:-1] if last else piece):
        raise Unreadable("a quoted string in it cannot be read with certainty")
    return re.sub(r"\\([$`\"\\\n])", lambda m: m[1].strip("\n"), piece)


def _odd(text: str) -> bool:
    """Does it end in an escape that is still open?"""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def between(node: Node, source: Source, start: int, end: int) -> Iterable[Node | str]:
    """Expansions of a string or here-document, and the text before, between and after them."""
    place = start
    for child in node.children:
        if child.type == "ERROR" or child.is_missing:
            raise Unreadable("it is not a shell script that can be read with certainty")
        if child.type in ("simple_expansion", "expansion", "command_substitution") or (
            child.is_named and child.type not in ("string_content", "heredoc_content")
        ):
            text = source.text[place : child.start_byte]
            if text.endswith("$") and not _odd(text[:-1]):
                raise Unreadable("a quoted string in it cannot be read with certainty")
            yield text
            yield child
            place = child.end_byte
    yield source.text[place:end]


def _expansion(node: Node, source: Source, nested: list[Node], level: int = 0) -> None:
    """Checks `$x`, `${x...}`, `$(...)`. Raises: Unreadable for all that evaluates or assigns."""
    if node.type in SUBSTITUTIONS:
        text = source.of(node)
        if text.startswith("`") and ("\\" in text or '"' in text or text.count("`") != 2):
            raise Unreadable("backquotes with escapes or quotes in them are not read here")
        nested.append(node)
        return
    children = source.parts(node, 2, 9)
    if node.type == "simple_expansion":
        if len(children) != 2 or children[1].type not in ("variable_name", "special_variable_name"):
            raise Unreadable("an expansion in it is not read here")
        return
    if node.type != "expansion" or source.of(children[0]) != "${":
        raise Unreadable(f"it holds {node.type.replace('_', ' ')}, which is not read here")
    inner = children[1:-1]
    if inner and inner[0].type == "#":
        inner = inner[1:]
        if len(inner) != 1:
            raise Unreadable("an expansion in it is not read here")
    if not inner or inner[0].type not in ("variable_name", "special_variable_name"):
        raise Unreadable("an expansion in it is not read here")
    if len(inner) > 1:
        _operand(inner[1:], source, nested, level)


def _operand(inner: Sequence[Node], source: Source, nested: list[Node], level: int) -> None:
    """What stands behind the name in `${name:-word}`."""
    if inner[0].type not in _EXPANSION_OPERATORS or len(inner) > 2 or level >= MAX_NESTED:
        raise Unreadable("an expansion in it is not read here")
    for node in inner[1:]:
        if node.type in ("word", "number", "regex", "variable_name"):
            if not _OPERAND.fullmatch(source.of(node)):
                raise Unreadable("an expansion in it is not read here")
        elif node.type in ("simple_expansion", "expansion", "command_substitution"):
            _expansion(node, source, nested, level + 1)
        else:
            raise Unreadable("an expansion in it is not read here")


def is_name(text: str) -> bool:
    """A variable's name, without subscript."""
    return _NAME.fullmatch(text) is not None
