"""Simple commands, assignments and redirections as records, read from their nodes."""

from collections.abc import Sequence

from attrs import frozen
from tree_sitter import Node

from harness_batch.permissions.shell_names import steers
from harness_batch.permissions.shell_redirects import Redirect
from harness_batch.permissions.shell_source import WORDS, Source, Unreadable
from harness_batch.permissions.shell_words import Word, read_word

_DECLARE_FLAGS = frozenset(("-x", "-r", "-g", "-p"))
_OPERATORS = frozenset((">", ">>", ">|", "&>", "&>>", ">&", "<", "<&", "<>"))
_CLOSES = frozenset((">&-", "<&-"))
REDIRECTS = frozenset(("file_redirect", "herestring_redirect", "heredoc_redirect"))


@frozen
class Tail:
    """Redirections behind a statement. In bash they belong to its last command.

    So do words that stand among them: `echo > f b c` prints `b c`.
    """

    redirects: tuple[Redirect, ...] = ()
    words: tuple[Word, ...] = ()

    def __add__(self, other: "Tail") -> "Tail":
        return Tail(self.redirects + other.redirects, self.words + other.words)


NO_TAIL = Tail()


@frozen
class Simple:
    """A simple command: names set before it, its words, its redirections."""

    names: tuple[str, ...]
    words: tuple[Word, ...]
    tail: Tail


@frozen
class Declaration:
    """`export` and its kin as text, and why they may do more than declare."""

    text: str
    doubt: str | None


def steering(name: str) -> str:
    """The reason why an assignment makes a command undecidable."""
    return f"setting {name} can change what runs"


def read_simple(node: Node, source: Source, nested: list[Node]) -> Simple:
    """A `command` node; substitutions are appended to `nested`. Raises: Unreadable."""
    names: list[str] = []
    words: list[Word] = []
    tail = NO_TAIL
    for child in source.children(node):
        if child.type == "variable_assignment":
            names.append(read_assignment(child, source, nested))
        elif child.type == "command_name":
            (only,) = source.parts(child, 1, 1)
            words.append(read_word(only, source, nested))
        elif child.type in REDIRECTS:
            own = read_redirect(child, source, nested)
            if own.words:
                raise Unreadable("a redirection in it cannot be read with certainty")
            tail += own
        elif child.type in WORDS:
            words.append(read_word(child, source, nested))
        else:
            raise Unreadable(f"it holds {child.type.replace('_', ' ')}, which is not read here")
    if not words:
        raise Unreadable("a command without a name")
    return Simple(tuple(names), tuple(words), tail)


def read_assignment(node: Node, source: Source, nested: list[Node]) -> str:
    """The name that is set. Raises: Unreadable for arrays and subscripts."""
    name, equals, *value = source.parts(node, 2, 3)
    if name.type != "variable_name" or equals.type not in ("=", "+="):
        raise Unreadable("an assignment in it is not read here")
    if any(child.start_byte != equals.end_byte for child in value):
        raise Unreadable("an assignment in it cannot be read with certainty")
    for child in value:
        read_word(child, source, nested)
    return source.of(name)


def read_declaration(node: Node, source: Source, nested: list[Node]) -> Declaration:
    """`export`, `declare`, `local`, `readonly`, `typeset`, `unset`. Raises: Unreadable."""
    keyword, *arguments = source.children(node)
    doubt = None
    for child in arguments:
        if child.type == "variable_assignment":
            name = read_assignment(child, source, nested)
        elif child.type == "variable_name":
            name = source.of(child)
        else:
            word = read_word(child, source, nested)
            if word.value not in _DECLARE_FLAGS:
                doubt = f"`{source.of(keyword)} {word.shown}` is not read here"
            continue
        doubt = steering(name) if steers(name) else doubt
    return Declaration(" ".join(source.of(c) for c in (keyword, *arguments)), doubt)


def read_redirect(node: Node, source: Source, nested: list[Node]) -> Tail:
    """A `file_redirect` or `herestring_redirect` node. Raises: Unreadable."""
    children = source.children(node)
    start = node.start_byte
    before = source.text[start - 1] if start else "\n"
    if children[0].type == "file_descriptor":
        if before not in " \t\n;|&()" or not source.of(children[0]).isdigit():
            raise Unreadable("a redirection in it cannot be read with certainty")
        children = children[1:] or [node]
    elif before == "}":  # `{name}>file` sets a variable
        raise Unreadable("a redirection in it cannot be read with certainty")
    operator, targets = source.of(children[0]), children[1:]
    if operator in _CLOSES:
        return _behind(targets, source, nested)
    if operator == "<<<" and len(targets) == 1:
        read_word(targets[0], source, nested)
        return NO_TAIL
    if operator not in _OPERATORS or not targets:
        raise Unreadable("a redirection in it is not read here")
    target = read_word(targets[0], source, nested)
    return Tail((Redirect(operator, target),)) + _behind(targets[1:], source, nested)


def _behind(nodes: Sequence[Node], source: Source, nested: list[Node]) -> Tail:
    return Tail((), tuple(read_word(node, source, nested) for node in nodes))
