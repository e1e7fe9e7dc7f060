"""`[ ... ]` and `[[ ... ]]`: which tests look only at files and strings."""

import re

from attrs import Factory, define
from tree_sitter import Node

from harness_batch.permissions.shell_source import WORDS, Source, Unreadable
from harness_batch.permissions.shell_words import Word, read_word

_UNARY = frozenset(f"-{letter}" for letter in "abcdefghkLnNOpPrsStuwxGz") | {"!"}
_STRING = frozenset(("=", "==", "!=", "=~", "-nt", "-ot", "-ef"))
_NUMERIC = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_OPERATORS = _UNARY | _STRING | _NUMERIC | {"-a", "-o"}
_DOUBLE = frozenset(("&&", "||", "(", ")", "<", ">"))
_NUMBER = re.compile(r"-?\d+|\$[?#]|\"\$[?#]\"|\$\{#\w+\}")
_PATTERN = re.compile(r"[A-Za-z0-9_.,:/@%+=^*?\[\]|()-]*\$?")
MAX_NESTED = 20
_NESTS = frozenset(("unary_expression", "binary_expression", "parenthesized_expression"))


@define
class _Test:
    """A test while it is read; `double` is `[[`, in which nothing is split."""

    source: Source
    double: bool
    nested: list[Node]
    operands: list[Word] = Factory(list)
    operators: list[str] = Factory(list)

    def add(self, node: Node, level: int = 0) -> None:
        """An operator, an operand, or an expression of both."""
        text = self.source.of(node)
        if level > MAX_NESTED:
            raise Unreadable("a test in it is nested too deeply")
        if node.type in _NESTS:
            children = self.source.children(node)
            self._numeric([self.source.of(child) for child in children])
            for child in children:
                self.add(child, level + 1)
        elif node.type in WORDS:
            word = read_word(node, self.source, self.nested)
            whole = self.double or _NUMBER.fullmatch(text)
            self.operands.append(Word(word.value, word.shown) if whole else word)
        elif node.type in ("extglob_pattern", "regex"):
            if not self.double or not _PATTERN.fullmatch(text):
                raise Unreadable("a pattern in a test cannot be read with certainty")
            self.operands.append(Word(None, text))
        elif text in _OPERATORS:
            self.operators.append(text)
        elif not (self.double and text in _DOUBLE):
            raise Unreadable(f"`{text}` in a test is not read here")

    def _numeric(self, texts: list[str]) -> None:
        if not self.double or not any(text in _NUMERIC for text in texts):
            return
        if not all(text in _NUMERIC or _NUMBER.fullmatch(text) for text in texts):
            raise Unreadable("a numeric comparison in [[ evaluates its operands (use [ )")

    def check(self) -> None:
        """`[` gets its operators as words, so no variable may turn into one."""
        if any(word.split for word in self.operands):
            raise Unreadable("an unquoted expansion in a test can become an operator (quote it)")
        several = len(self.operators) > 1 and self.operators != ["!", self.operators[-1]]
        if several and any(word.value is None for word in self.operands):
            raise Unreadable("a test with several operators and variables (use several tests)")


def check_test(node: Node, source: Source, nested: list[Node]) -> None:
    """Reads a test; substitutions in it are appended to `nested`.

    Raises: Unreadable for those that evaluate (`-v a[...]`, `-eq` in `[[`), and for all that `[`
    could take for operators at run time.
    """
    children = source.parts(node, 3, 50)
    opens, closes = source.of(children[0]), source.of(children[-1])
    if (opens, closes) not in (("[", "]"), ("[[", "]]")):
        raise Unreadable("an arithmetic test evaluates its operands")
    test = _Test(source, opens == "[[", nested)
    for child in children[1:-1]:
        test.add(child)
    if not test.double:
        test.check()


def read_case_item(node: Node, source: Source, nested: list[Node]) -> list[Node]:
    """The statements of one branch, after a look at its patterns. Raises: Unreadable."""
    children = source.children(node)
    for place, child in enumerate(children):
        if child.type == ")":
            return children[place + 1 :]
        if child.type in WORDS:
            read_word(child, source, nested)
        elif child.type == "extglob_pattern":
            if not _PATTERN.fullmatch(source.of(child)):
                raise Unreadable("a pattern of a case cannot be read with certainty")
        elif child.type not in ("(", "|"):
            raise Unreadable("a pattern of a case cannot be read with certainty")
    raise Unreadable("a case in it cannot be read with certainty")
