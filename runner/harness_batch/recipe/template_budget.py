"""A Jinja sandbox whose templates end: work and memory are counted before they are spent.

Rules, each of which closes a way to hang or to fill the memory:

- every turn of a loop, call, filter and output is paid for by the size of what it makes;
- what an operator or filter would make is estimated before it is made (`*`, `join`, `indent` ...);
- lists, tuples, dicts and `~` are weighed where they are built, shared parts counted again, so
  that nothing can double itself unseen;
- methods that take a width and all that is random (`lipsum`, `random`) do not exist here.

The budget is one per rendering and is counted in work, not in time; the processor time beside it
is a second line. One thread at a time.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from attrs import Factory, define
from jinja2 import StrictUndefined, Template, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.loaders import BaseLoader
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

MAX_WORK = 5_000_000
"""Characters, items and turns of loops together, for all texts of one rendering."""
MAX_VALUE = 2_000_000
"""Characters and items of one value."""
TURN = 4
"""What one turn of a loop costs beside what it prints."""
CALL = 50
"""What one call costs beside what it gives."""
MAX_SECONDS = 5.0
"""Processor time of one rendering."""
MAX_WIDTH = 10_000
MAX_WRAPPED = 100_000
"""Wrapping one endless word is quadratic."""
MAX_INTEGER_BITS = 4_096

_EACH = "turns of a loop"
_WEIGHED = "weighed"
"""Names of filters that no template can spell, since they hold blanks or are only put in here."""

_REFUSED_METHODS = frozenset(
    ["center", "ljust", "rjust", "zfill", "expandtabs", "translate", "maketrans", "format", "format_map", "encode", "to_bytes"]
)
_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(?:\*|\d{4,})")


class TemplateTooExpensive(TemplateRuntimeError):
    """A template wants more work or memory than a recipe has a use for."""


def weight(value: object) -> int:
    """Characters and items of a value, shared parts counted each time; stops above MAX_VALUE."""
    total = 0
    rest = [value]
    while rest and total <= MAX_VALUE:
        match rest.pop():
            case str() | bytes() as text:
                total += max(len(text), 1)
            case bool() | float() | None:
                total += 1
            case int() as number:
                total += 1 + number.bit_length() // 8
            case dict() as entries:
                total += 1 + len(entries)
                rest.extend(entries)
                rest.extend(entries.values())
            case list() | tuple() | set() | frozenset() as items:
                total += 1 + len(items)
                rest.extend(items)
            case Namespace():
                raise TemplateTooExpensive("a namespace cannot be printed, listed or filtered")
            case _:
                total += 1
    return total


@define
class Budget:
    """What is left of one rendering's work."""

    work: int = MAX_WORK
    deadline: float = Factory(lambda: time.thread_time() + MAX_SECONDS)

    def spend(self, amount: int) -> None:
        """Raises: TemplateTooExpensive when the work, one value or the time is too much."""
        if amount > MAX_VALUE:
            raise TemplateTooExpensive(f"makes a value of more than {MAX_VALUE:,} characters")
        self.work -= 1 + amount
        if self.work < 0:
            raise TemplateTooExpensive(f"needs more than {MAX_WORK:,} steps of work")
        if time.thread_time() > self.deadline:
            raise TemplateTooExpensive(f"takes more than {MAX_SECONDS:g} seconds")

    def weighed(self, value: object) -> Any:
        """The value itself, paid for."""
        self.spend(weight(value))
        return value

    def each(self, items: Iterable[Any], constant: int) -> Iterator[Any]:
        """The items, each paid for; `constant` is the text that each turn prints anyway."""
        for item in items:
            self.spend(TURN + constant)
            yield item


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """Jinja with StrictUndefined in which everything is paid for out of `budget`."""

    intercepted_binops = frozenset(["*", "**", "+", "%"])

    def __init__(self, loader: BaseLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=StrictUndefined,
            finalize=_printed,
            optimized=False,  # nothing is worked out while compiling, where nobody counts
            keep_trailing_newline=True,
            cache_size=0,  # the loader keeps templates and is asked each time, so that it counts
        )
        self.budget = Budget()
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]
        for name in ("random", "urlize"):
            del self.filters[name]
        self.filters = {name: self._metered(name, f) for name, f in self.filters.items()}
        self.filters[_EACH] = lambda items, constant: self.budget.each(items, constant)
        self.filters[_WEIGHED] = lambda value: self.budget.weighed(value)

    def _metered(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        value_at = 1 if hasattr(function, "jinja_pass_arg") else 0
        estimate = _ESTIMATES.get(name)

        @wraps(function)
        def metered(*args: Any, **kwargs: Any) -> Any:
            self.budget.spend(weight(args[value_at]))
            if estimate is not None:
                self.budget.spend(estimate(*args[value_at:], **kwargs))
            return self.budget.weighed(function(*args, **kwargs))

        return metered

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call what a template calls."""
        owner = getattr(function, "__self__", None)
        estimate = _ESTIMATES.get(getattr(function, "__name__", ""))
        if isinstance(owner, str | bytes) and estimate is not None:
            text_first = (
                (args[0], owner) if function.__name__ == "join" and args else (owner, *args)
            )
            self.budget.spend(estimate(*text_first, **kwargs))
        self.budget.spend(CALL)
        result = super().call(context, function, *args, **kwargs)
        return result if isinstance(result, Namespace) else self.budget.weighed(result)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Work out one operation whose result may be larger than its operands."""
        self.budget.spend(_estimated_operation(operator, left, right))
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """The sandbox's own rule, and no methods that take a width."""
        return attr not in _REFUSED_METHODS and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` takes widths too; the sandbox would let its own copy of it pass."""
        return None

    def compiled(self, source: str, name: str | None, filename: str) -> Template:
        """A template with its meters built in.

        Raises: TemplateSyntaxError and what Python's compiler says of absurd nesting.
        """
        tree = self.parse(source, name, filename)
        metered = _Meters(self).visit(tree)
        code = self.compile(metered, name, filename)
        return Template.from_code(self, code, self.make_globals(None))


@pass_context
def _printed(context: Context, value: Any) -> Any:
    """What an output prints: booleans as the recipe's own language writes them."""
    environment = context.environment
    assert isinstance(environment, MeteredEnvironment)
    environment.budget.spend(weight(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


class _Meters(NodeTransformer):
    """Puts a meter around loops and around everything that builds a value without a call."""

    def __init__(self, environment: MeteredEnvironment) -> None:
        self.environment = environment

    def _filtered(self, node: nodes.Expr, name: str, *constants: int) -> nodes.Filter:
        arguments = [nodes.Const(constant) for constant in constants]
        metered = nodes.Filter(node, name, arguments, [], None, None, lineno=node.lineno)
        metered.set_environment(self.environment)
        return metered

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - named by jinja's visitor
        """Each turn pays for the constant text of its body."""
        self.generic_visit(node)
        body = (t for part in node.body for t in _with_self(part, nodes.TemplateData))
        node.iter = self._filtered(node.iter, _EACH, sum(len(text.data) for text in body))
        return node

    def _weighed(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        stored = isinstance(node, nodes.Tuple) and node.ctx != "load"
        return node if stored else self._filtered(node, _WEIGHED)

    visit_List = visit_Tuple = visit_Dict = _weighed  # noqa: N815 - as above

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - as above
        """`~` makes texts of its operands, so these are weighed first."""
        self.generic_visit(node)
        node.nodes = [self._filtered(operand, _WEIGHED) for operand in node.nodes]
        return self._filtered(node, _WEIGHED)


def _with_self(node: nodes.Node, kind: type[nodes.TemplateData]) -> Iterator[nodes.TemplateData]:
    if isinstance(node, kind):
        yield node
    yield from node.find_all(kind)


def _estimated_operation(operator: str, left: Any, right: Any) -> int:
    match operator, left, right:
        case "*", int(), int():
            return _bits(left.bit_length() + right.bit_length())
        case "*", int(), _:
            return weight(right) * max(left, 0)
        case "*", _, int():
            return weight(left) * max(right, 0)
        case "**", int(), int():
            return _bits(max(left.bit_length(), 1) * abs(right))
        case "%", str() | bytes(), _:
            return _format_size(left, right)
        case "%", _, _:
            return 0
        case "+", _, _:
            return weight(left) + weight(right)
    return 0


def _bits(bits: int) -> int:
    if bits > MAX_INTEGER_BITS:
        raise TemplateTooExpensive(f"makes a number of more than {MAX_INTEGER_BITS:,} bits")
    return 0


def _format_size(text: Any, *values: Any, **named: Any) -> int:
    if isinstance(text, bytes) or _WIDE_FORMAT.search(str(text)):
        raise SecurityError(f"a format wider than {MAX_WIDTH:,} characters is refused")
    return weight(text) + str(text).count("%") * (MAX_WIDTH // 10 + weight([values, named]))


def _width(_value: Any, width: Any = 0, *_rest: Any, **named: Any) -> int:
    for number in (width, *named.values()):
        if isinstance(number, int) and number > MAX_WIDTH:
            raise TemplateTooExpensive(f"asks for a width of more than {MAX_WIDTH:,}")
    return 0


def _indent_size(text: Any, width: Any = 4, *_rest: Any, **_named: Any) -> int:
    each = len(width) if isinstance(width, str) else max(int(width), 0)
    return weight(text) + (str(text).count("\n") + 1) * each


def _json_size(value: Any, indent: Any = None, *_rest: Any, **_named: Any) -> int:
    """Indenting makes at most as many lines as there are items and characters."""
    if isinstance(indent, int) and indent > 16:
        raise TemplateTooExpensive("indents JSON by more than 16")
    return weight(value)


def _join_size(items: Any, separator: Any = "", *_rest: Any, **named: Any) -> int:
    glue = weight(named.get("d", separator))
    count = len(items) if hasattr(items, "__len__") else MAX_VALUE // max(glue, 10)
    return weight(items) + count * glue


def _replace_size(text: Any, old: Any = "", new: Any = "", *_rest: Any, **named: Any) -> int:
    text, old, new = str(text), str(named.get("old", old)), str(named.get("new", new))
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def _wrap_size(text: Any, _width: Any = 79, *rest: Any, **named: Any) -> int:
    if weight(text) > MAX_WRAPPED:
        raise TemplateTooExpensive(f"wraps a text of more than {MAX_WRAPPED:,} characters")
    return weight(text) * (1 + weight([rest, named]))


def _round_size(_value: Any, precision: Any = 0, *_rest: Any, **named: Any) -> int:
    if abs(int(named.get("precision", precision))) > 300:
        raise TemplateTooExpensive("rounds to more than 300 digits")
    return 0


def _sum_size(_items: Any, _attribute: Any = None, start: Any = 0, **named: Any) -> int:
    start = named.get("start", start)
    if not isinstance(start, int | float):
        raise SecurityError("`sum` adds numbers only")
    return 0


_ESTIMATES: dict[str, Callable[..., int]] = {
    "batch": _width,
    "center": _width,
    "format": _format_size,
    "indent": _indent_size,
    "join": _join_size,
    "replace": _replace_size,
    "round": _round_size,
    "slice": _width,
    "sum": _sum_size,
    "tojson": _json_size,
    "wordwrap": _wrap_size,
}
"""Filter or method of texts -> size of what it would make, or TemplateTooExpensive."""
