"""A script's text and the children of its nodes, checked against how bash parts words and lines.

The grammar recovers from what it does not understand and reads over it; here that is an error.
"""

from attrs import frozen
from tree_sitter import Node

from harness_batch.permissions.shell_names import words as table

SUBSTITUTIONS = frozenset(("command_substitution", "process_substitution"))
WORDS = table(
    "word number concatenation string raw_string ansi_c_string simple_expansion expansion"
    " command_substitution process_substitution $"
)
"""Node kinds that are a word, or a piece of one."""
_BODIES = table(
    "program compound_statement do_group if_statement elif_clause else_clause subshell"
    " command_substitution process_substitution"
)
"""Kinds of nodes whose children are statements and the tokens that part them."""
_LINES = _BODIES | table(
    "case_statement case_item while_statement for_statement function_definition"
)
"""Kinds of nodes in which a line may end between children; in others it ends a command."""
_FOLLOWS = table("comment elif_clause else_clause")


class Unreadable(Exception):
    """What a script does cannot be told in advance; the text says why."""


@frozen
class Source:
    """A script as text in which an index is a byte offset (latin-1), with its tree's nodes."""

    text: str

    def of(self, node: Node) -> str:
        """The node's own text."""
        return self.text[node.start_byte : node.end_byte]

    def children(self, node: Node) -> list[Node]:
        """The children without comments; nothing but blanks lies between them.

        Raises: Unreadable when the grammar skipped text, found an error or put in a token.
        """
        children = node.children
        before: Node | None = None
        comments = False
        for child in children:
            if child.type == "ERROR" or child.is_missing:
                raise Unreadable("it is not a shell script that can be read with certainty")
            start = node.start_byte if before is None else before.end_byte
            self._gap(node, before, child, self.text[start : child.start_byte])
            if child.type == "comment":
                self._comment(child)
                comments = True
            before = child
        if before is not None and before.end_byte != node.end_byte:
            blank(self.text[before.end_byte : node.end_byte])
        return [child for child in children if child.type != "comment"] if comments else children

    def _gap(self, node: Node, before: Node | None, child: Node, gap: str) -> None:
        """What lies before a child must part it as bash parts it. Raises: Unreadable."""
        kind = node.type
        if before is None:
            fits = not gap
        elif not gap:
            # Two words side by side are one word to bash.
            fits = kind == "concatenation" or not (before.type in WORDS and child.type in WORDS)
        elif "\n" not in blank(gap):
            # Two statements need a line's end or a token between them.
            fits = not (kind in _BODIES and before.is_named and child.is_named)
            fits = fits or child.type in _FOLLOWS
        elif kind in ("list", "pipeline"):
            fits = not before.is_named or before.type == "comment"
        elif kind == "heredoc_redirect":
            fits = child.type in ("heredoc_body", "heredoc_end")
        else:
            fits = kind in _LINES and not (before.type in WORDS and child.type in WORDS)
        if not fits:
            raise Unreadable("a part of it cannot be read with certainty")

    def parts(self, node: Node, least: int, most: int) -> list[Node]:
        """As `children`, of which there must be so many."""
        children = self.children(node)
        if not least <= len(children) <= most:
            raise Unreadable("it is not a shell script that can be read with certainty")
        return children

    def _comment(self, node: Node) -> None:
        """A comment begins where a word could begin, and ends with its line."""
        before = self.text[node.start_byte - 1] if node.start_byte else "\n"
        if before not in " \t\n;|&()" or "\n" in self.of(node):
            raise Unreadable("a comment in it cannot be read with certainty")


def blank(gap: str) -> str:
    """The gap without continued lines. Raises: Unreadable unless bash reads it as blanks."""
    if "\\" in gap and gap[0] in " \t\n":
        gap = gap.replace("\\\n", "")
    if gap.strip(" \t\n"):
        raise Unreadable("a part of it cannot be read with certainty")
    return gap
