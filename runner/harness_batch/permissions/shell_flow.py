"""Kinds of statements: lists, pipelines, loops, functions; and the door to the walk."""

from collections.abc import Mapping

from attrs import evolve
from tree_sitter import Node

from harness_batch.permissions.shell_commands import Sink, Standing
from harness_batch.permissions.shell_heredocs import read_heredoc
from harness_batch.permissions.shell_names import KNOWN, steers
from harness_batch.permissions.shell_nodes import NO_TAIL, REDIRECTS, Tail, read_redirect, steering
from harness_batch.permissions.shell_redirects import ShellPlace, either
from harness_batch.permissions.shell_source import WORDS, Unreadable
from harness_batch.permissions.shell_tests import check_test, read_case_item
from harness_batch.permissions.shell_walk import Reader, Walk, moves
from harness_batch.permissions.shell_words import is_name, read_word
from harness_batch.rules import Ask


def walk_script(command: str, place: ShellPlace, sink: Sink) -> None:
    """Gathers in `sink` what the command asks for when it runs in `place`."""
    standing = Standing(place, frozenset({place.cwd}), frozenset({place.cwd}))
    try:
        Walk(_STATEMENTS, standing, sink).script(command)
    except Unreadable as why:
        sink.asks.append(Ask("bash", command.strip(), str(why)))


def sequence(walk: Walk, node: Node, tail: Tail) -> None:
    """Statements one after the other, and the words of the grammar between them."""
    children = walk.source.children(node)
    if node.type == "compound_statement" and walk.source.of(children[0]) != "{":
        raise Unreadable("arithmetic evaluates its operands")
    walk.around(tail)
    walk.each(children)
    walk.standing.sure = walk.standing.places


def and_or(walk: Walk, node: Node, tail: Tail) -> None:
    """`a && b`, `a || b`: behind `&&` a `cd` has succeeded."""
    left, operator, right = walk.source.parts(node, 3, 3)
    walk.token(operator)
    walk.visit(left)
    standing = walk.standing
    sure, before = standing.sure, standing.places
    if operator.type == "&&":
        standing.places = sure
    walk.visit(right, tail)
    if operator.type == "||":
        standing.sure = either(sure, standing.sure)
    standing.places = either(before, standing.places)


def pipeline(walk: Walk, node: Node, tail: Tail) -> None:
    """Every part runs in a shell of its own."""
    children = walk.source.children(node)
    for child in children:
        if child.is_named:
            walk.apart(child, tail if child == children[-1] else NO_TAIL)
        else:
            walk.token(child)


def subshell(walk: Walk, node: Node, tail: Tail) -> None:
    """`( ... )`, `$( ... )`, `<( ... )`."""
    if walk.source.of(node).startswith(("((", "$((")):
        raise Unreadable("`((` may be arithmetic, which evaluates its operands")
    walk.around(tail)
    outside = walk.standing
    walk.standing = evolve(outside)
    nested: list[Node] = []
    for child in walk.source.children(node):
        if child.type == "file_redirect" and node.type == "command_substitution":
            walk.around(read_redirect(child, walk.source, nested), nested)
        else:
            walk.each((child,))
    walk.standing = outside
    outside.sure = outside.places


def negated(walk: Walk, node: Node, tail: Tail) -> None:
    """`! command`."""
    bang, inner = walk.source.parts(node, 2, 2)
    walk.token(bang)
    walk.visit(inner, tail)
    walk.standing.sure = walk.standing.places


def redirected(walk: Walk, node: Node, tail: Tail) -> None:
    """A statement with redirections behind it; without one they open their files all the same."""
    body: Node | None = None
    own = NO_TAIL
    following: list[Node] = []
    nested: list[Node] = []
    for child in walk.source.children(node):
        if child.type == "heredoc_redirect":
            document = read_heredoc(child, walk.source)
            nested += document.expansions
            own += document.tail
            following += document.following
        elif child.type in REDIRECTS:
            own += read_redirect(child, walk.source, nested)
        elif body is None and own == NO_TAIL:
            body = child
        else:
            raise Unreadable("a redirection in it cannot be read with certainty")
    if following and tail != NO_TAIL:
        raise Unreadable("a redirection in it cannot be read with certainty")
    walk.around(NO_TAIL, nested)
    if body is None:
        walk.around(own + tail)
    else:
        walk.visit(body, own + tail)
    walk.each(following)


def loop(walk: Walk, node: Node, tail: Tail) -> None:
    """`for`, `select`, `while`, `until`: a `cd` in it adds up."""
    walk.around(tail)
    if moves(walk.source.of(node)):
        walk.standing.places = walk.standing.sure = None
    nested: list[Node] = []
    children = walk.source.children(node)
    for child in children:
        if child.type in WORDS and node.type == "for_statement":
            read_word(child, walk.source, nested)
        elif child.type == "variable_name" and steers(walk.source.of(child)):
            walk.doubt(node, steering(walk.source.of(child)))
    walk.around(NO_TAIL, nested)
    walk.each([c for c in children if c.type not in WORDS and c.type != "variable_name"])
    walk.standing.sure = walk.standing.places


def case(walk: Walk, node: Node, tail: Tail) -> None:
    """`case word in pattern) ... ;; esac`."""
    nested: list[Node] = []
    statements: list[Node] = []
    for child in walk.source.children(node):
        if child.type in WORDS:
            read_word(child, walk.source, nested)
        elif child.type == "case_item":
            statements += read_case_item(child, walk.source, nested)
        else:
            walk.token(child)
    walk.around(tail, nested)
    walk.each(statements)
    walk.standing.sure = walk.standing.places


def function(walk: Walk, node: Node, tail: Tail) -> None:
    """A function: its body counts as if it ran, its calls are commands like any other."""
    standing = walk.standing
    if walk.moves:
        standing.places = standing.sure = None
    nested: list[Node] = []
    for child in walk.source.children(node):
        if child.type == "word":
            if not is_name(walk.source.of(child)) or walk.source.of(child) in KNOWN:
                raise Unreadable(f"it gives `{walk.source.of(child)}` another meaning")
        elif child.type in REDIRECTS:
            tail += read_redirect(child, walk.source, nested)
        else:
            walk.each((child,))
    walk.around(tail, nested)


def conditional(walk: Walk, node: Node, tail: Tail) -> None:
    """`[ ... ]`, `[[ ... ]]`: they look, and nothing more."""
    nested: list[Node] = []
    check_test(node, walk.source, nested)
    walk.around(tail, nested)


_STATEMENTS: Mapping[str, Reader] = {
    "program": sequence,
    "compound_statement": sequence,
    "do_group": sequence,
    "if_statement": sequence,
    "elif_clause": sequence,
    "else_clause": sequence,
    "list": and_or,
    "pipeline": pipeline,
    "subshell": subshell,
    "command_substitution": subshell,
    "process_substitution": subshell,
    "negated_command": negated,
    "redirected_statement": redirected,
    "command": Walk.command,
    "variable_assignment": Walk.assignments,
    "variable_assignments": Walk.assignments,
    "declaration_command": Walk.declaration,
    "unset_command": Walk.declaration,
    "for_statement": loop,
    "while_statement": loop,
    "case_statement": case,
    "function_definition": function,
    "test_command": conditional,
}
