"""The walk over a script's tree, in the order bash runs it, gathering what it asks for.

What it does not know, or whose text does not check, makes an undecidable ask for the whole
statement; what lies inside is still gathered. `shell_flow.py` knows the kinds of statements.
"""

import functools
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import tree_sitter_bash
from attrs import Factory, define, evolve
from tree_sitter import Language, Node, Parser

from harness_batch.permissions.shell_commands import Shell, Sink, Standing, command_asks
from harness_batch.permissions.shell_names import steers, words
from harness_batch.permissions.shell_nodes import (
    NO_TAIL,
    Tail,
    read_assignment,
    read_declaration,
    read_redirect,
    read_simple,
    steering,
)
from harness_batch.permissions.shell_redirects import redirect_asks
from harness_batch.permissions.shell_source import Source, Unreadable
from harness_batch.rules import Ask

MAX_NODES = 5_000
MAX_DEPTH = 60
MAX_SECONDS = 0.2
"""Processor time for the grammar; 64 kB of ordinary script take 0.04."""
_CHUNK = 8192
MAX_SCRIPTS = 6
"""Scripts within scripts (`sh -c "sh -c ..."`)."""

_MOVES = re.compile(r"\b(cd|pushd|popd)\b")
_TOKENS = {"\n"} | words(
    "; ;; ;& ;;& & && || | |& ( ) { } if then elif else fi for in do done while until case esac"
    " select function ! $( ` <( >("
)

_EMPTY = Source("")

Reader: TypeAlias = Callable[["Walk", Node, Tail], None]
"""Reads one kind of statement."""


def moves(text: str) -> bool:
    """Could it go to another folder?"""
    return _MOVES.search(text) is not None


@functools.cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _parse(data: bytes) -> Node:
    """The root of a script's tree.

    Raises: Unreadable when the grammar takes too long: in a text that is no script at all its
    search for a likely reading grows with the square of the length (9 s for 60 kB of `|]{1`). The
    end of the search cannot be stopped, hence `MAX_BYTES` of `shell.py`.
    """
    started = time.thread_time()
    try:
        tree = _parser().parse(
            lambda offset, _: data[offset : offset + _CHUNK],
            progress_callback=lambda *_: time.thread_time() - started > MAX_SECONDS,
        )
    except ValueError:  # what a parse that was stopped raises
        _parser().reset()
        raise Unreadable("it takes too long to read") from None
    return tree.root_node


@define
class Walk:
    """One script on its way; `level` counts scripts in scripts, `depth` nested statements."""

    readers: Mapping[str, Reader]
    """By kind of node. Another kind is not read."""
    standing: Standing
    sink: Sink
    source: Source = _EMPTY
    level: int = 0
    depth: int = 0
    moves: bool = False
    """The script holds a `cd` somewhere, so that a function's body may run anywhere."""
    seen: set[int] = Factory(set)
    """Nodes that were visited; going over them again would double the work at every level."""

    def script(self, text: str) -> None:
        """Reads a whole script, such as the argument of `sh -c`."""
        if self.level >= MAX_SCRIPTS:
            raise Unreadable("it wraps scripts in scripts too deeply")
        data = text.encode(errors="replace")
        root = _parse(data)
        inner = evolve(
            self,
            standing=evolve(self.standing),
            source=Source(data.decode("latin-1")),
            level=self.level + 1,
            moves=moves(text),
            seen=set(),
        )
        if root.descendant_count > MAX_NODES:
            inner.doubt(root, "it has too many parts")
        elif root.has_error:
            inner.doubt(root, "it is not a shell script that can be read with certainty")
            inner.salvage(root)
        else:
            inner.whole(root)

    def whole(self, root: Node) -> None:
        """The statements of a script; nothing of its text may lie outside them."""
        text = self.source.text
        if (text[: root.start_byte] + text[root.end_byte :]).strip(" \t\n"):
            self.doubt(root, "it is not a shell script that can be read with certainty")
        self.visit(root)

    def visit(self, node: Node, tail: Tail = NO_TAIL) -> None:
        """One statement with the redirections behind it."""
        self.depth += 1
        self.seen.add(node.id)
        try:
            if self.depth > MAX_DEPTH:
                self.doubt(node, "it is nested too deeply")
            else:
                self._statement(node, tail)
        except Unreadable as why:
            self.doubt(node, str(why))
            self.salvage(node)
        finally:
            self.depth -= 1

    def doubt(self, node: Node, why: str) -> None:
        """An ask for text that cannot be told in advance."""
        text = self.source.of(node).encode("latin-1").decode(errors="replace")
        self.sink.asks.append(Ask("bash", text.strip(), why))

    def salvage(self, node: Node) -> None:
        """What can be found inside a statement that could not be read; `cd` may lie in it."""
        if self.moves:
            self.standing.places = self.standing.sure = None
        self.depth += 1
        if self.depth <= MAX_DEPTH:
            for child in node.children:
                if child.id in self.seen:
                    continue
                if child.type in self.readers:
                    self.visit(child)
                elif child.type == "file_redirect":
                    self._salvage_redirect(child)
                else:
                    self.salvage(child)
        self.depth -= 1

    def _salvage_redirect(self, node: Node) -> None:
        nested: list[Node] = []
        try:
            self.before(read_redirect(node, self.source, nested), nested)
        except Unreadable as why:
            self.doubt(node, str(why))

    def _statement(self, node: Node, tail: Tail) -> None:
        reader = self.readers.get(node.type)
        if reader is None:
            raise Unreadable(f"it holds {node.type.replace('_', ' ')}, which is not read here")
        reader(self, node, tail)

    def before(self, tail: Tail, nested: Sequence[Node]) -> None:
        """Substitutions and redirections: bash does them before what they belong to."""
        for node in nested:
            self.apart(node, NO_TAIL)
        standing = self.standing
        standing.sure = standing.places
        for redirect in tail.redirects:
            self.sink.asks.extend(redirect_asks(redirect, standing.places, standing.place))

    def around(self, tail: Tail, nested: Sequence[Node] = ()) -> None:
        """As `before`, for statements that take no words."""
        if tail.words:
            raise Unreadable("words behind a redirection in it cannot be read with certainty")
        self.before(tail, nested)

    def command(self, node: Node, tail: Tail) -> None:
        """A simple command."""
        nested: list[Node] = []
        simple = read_simple(node, self.source, nested)
        tail = simple.tail + tail
        self.before(tail, nested)
        # `IFS= read` is the usual way to read lines, and changes nothing else.
        own = ("IFS",) if simple.words[0].value == "read" else ()
        doubt = next((steering(n) for n in simple.names if steers(n) and n not in own), None)
        shell = Shell(self.sink, self.standing, self.script)
        command_asks((*simple.words, *tail.words), shell, doubt)

    def assignments(self, node: Node, tail: Tail) -> None:
        """`a=b` without a command: variables of this shell, and of what it runs when exported."""
        nested: list[Node] = []
        own = [node] if node.type == "variable_assignment" else self.source.children(node)
        names = [read_assignment(child, self.source, nested) for child in own]
        self.around(tail, nested)
        for name in names:
            if steers(name):
                self.doubt(node, steering(name))

    def declaration(self, node: Node, tail: Tail) -> None:
        """`export a=b`: passing when it only declares."""
        nested: list[Node] = []
        read = read_declaration(node, self.source, nested)
        self.around(tail, nested)
        self.sink.asks.append(Ask("bash", read.text, read.doubt, passing=read.doubt is None))

    def each(self, children: Sequence[Node]) -> None:
        """Statements one after the other, and the words of the grammar between them."""
        for child in children:
            if child.is_named:
                self.visit(child)
            else:
                self.token(child)

    def token(self, node: Node) -> None:
        """A word of the grammar. Raises: Unreadable when it is none that is known here."""
        if node.type not in _TOKENS or self.source.of(node) != node.type:
            raise Unreadable(f"`{node.type}` in it is not read here")

    def apart(self, node: Node, tail: Tail) -> None:
        """In a shell of its own: where it goes nobody else goes."""
        outside = self.standing
        self.standing = evolve(outside)
        self.visit(node, tail)
        self.standing = outside
        outside.sure = outside.places
