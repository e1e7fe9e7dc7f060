"""Here-documents: they must end for bash where they do for us, or all that follows is a guess."""

import re
from collections.abc import Iterable

from attrs import frozen
from tree_sitter import Node

from harness_batch.permissions.shell_nodes import NO_TAIL, Tail, read_redirect
from harness_batch.permissions.shell_source import WORDS, Source, Unreadable
from harness_batch.permissions.shell_words import between, read_word

_UNCERTAIN = "a here-document in it cannot be read with certainty"
_OWN = frozenset(("<<", "<<-", "heredoc_start", "heredoc_end"))
_DELIMITER = re.compile(r"(['\"]?)([A-Za-z0-9_]+)\1")
_TEXT = re.compile(r"(?:[^\\`$]|\\[^\n]|\$(?![A-Za-z0-9_{(\[*@#?$!'\"-]))*")


@frozen
class Document:
    """What a here-document needs: expansions in it, and what stands behind `<<` on its line."""

    expansions: tuple[Node, ...]
    tail: Tail
    following: tuple[Node, ...]
    """`| sort`, `&& next`."""


def read_heredoc(node: Node, source: Source) -> Document:
    """A `heredoc_redirect` node.

    Raises: Unreadable unless the body begins on the next line and ends where bash ends it.
    """
    nested: list[Node] = []
    tail = NO_TAIL
    following: list[Node] = []
    for child in source.children(node):
        if child.type == "heredoc_body":
            nested.extend(_body(node, child, source))
        elif child.type in ("file_redirect", "herestring_redirect") and not following:
            tail += read_redirect(child, source, nested)
        elif child.type in WORDS:
            raise Unreadable("words behind a here-document in it are not read here")
        elif child.type not in _OWN:
            following.append(child)
    if not any(child.type == "heredoc_body" for child in node.children):
        raise Unreadable(_UNCERTAIN)
    return Document(tuple(nested), tail, tuple(following))


def _body(node: Node, body: Node, source: Source) -> Iterable[Node]:
    """Expansions of the body, after making sure where it begins and ends."""
    parts = {child.type: child for child in node.children}
    start, end = parts.get("heredoc_start"), parts.get("heredoc_end")
    delimiter = _DELIMITER.fullmatch(source.of(start)) if start else None
    if start is None or end is None or delimiter is None:
        raise Unreadable(_UNCERTAIN)
    strip = "\t" if source.of(node.children[0]) == "<<-" else ""
    first = source.text.rfind("\n", 0, start.start_byte) + 1
    begin = source.text.find("\n", start.end_byte) + 1
    line = source.text[first:begin]
    if not begin or line.count("<<") != 1 or "#" in line:
        raise Unreadable(_UNCERTAIN)
    if source.text[begin : body.start_byte].strip(strip) or begin > body.start_byte:
        raise Unreadable(_UNCERTAIN)
    if _ends_at(source.text, begin, delimiter[2], strip) != end.end_byte:
        raise Unreadable("a here-document in it ends elsewhere than it seems")
    return () if delimiter[1] else _expansions(body, source, begin, end.start_byte)


def _ends_at(text: str, place: int, delimiter: str, strip: str) -> int:
    """Where bash ends the document: behind the first line that is the delimiter; -1 without."""
    while place <= len(text):
        newline = text.find("\n", place)
        line = text[place : newline if newline >= 0 else len(text)]
        if line.lstrip(strip) == delimiter if strip else line == delimiter:
            return place + len(line)
        if newline < 0:
            return -1
        place = newline + 1
    return -1


def _expansions(body: Node, source: Source, begin: int, end: int) -> Iterable[Node]:
    found: list[Node] = []
    for piece in between(body, source, begin, max(end, body.end_byte)):
        if isinstance(piece, Node):
            read_word(piece, source, found)
        elif not _TEXT.fullmatch(piece):
            raise Unreadable("a here-document in it holds expansions that are not read here")
    return found
