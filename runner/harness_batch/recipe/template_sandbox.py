"""A Jinja sandbox whose templates end: everything they do is paid for out of a budget.

Turns of loops, calls, filters, outputs and operators pay where they happen; lists, tuples, dicts
and `~`, which Jinja compiles to plain Python, get meters built in. Methods that take a width, and
what is random (`lipsum`, `random`), do not exist here. One thread at a time.
"""

from collections.abc import Callable, Iterator
from functools import wraps

from jinja2 import StrictUndefined, Template, nodes, pass_context
from jinja2.loaders import BaseLoader
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from harness_batch.recipe.template_budget import (
    CALL,
    ESTIMATES,
    Budget,
    Value,
    estimated_operation,
    weight,
)

_EACH = "turns of a loop"
_WEIGHED = "weight of a value"
"""Names of filters that no template can spell, since they hold blanks."""

_REFUSED_METHODS = frozenset(
    [
        "center",
        "ljust",
        "rjust",
        "zfill",
        "expandtabs",
        "translate",
        "maketrans",
        "format",
        "format_map",
        "encode",
        "to_bytes",
    ]
)


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
        self.filters[_EACH] = self._each
        self.filters[_WEIGHED] = self._weighed

    def _each(self, items: Value, constant: int) -> Iterator[Value]:
        return self.budget.each(items, constant)

    def _weighed(self, value: Value) -> Value:
        return self.budget.weighed(value)

    def _metered(self, name: str, function: Callable[..., Value]) -> Callable[..., Value]:
        value_at = 1 if hasattr(function, "jinja_pass_arg") else 0
        estimate = ESTIMATES.get(name)

        @wraps(function)
        def metered(*args: Value, **kwargs: Value) -> Value:
            self.budget.spend(weight(args[value_at]))
            if estimate is not None:
                self.budget.spend(estimate(*args[value_at:], **kwargs))
            return self.budget.weighed(function(*args, **kwargs))

        return metered

    def call(self, context: Context, function: Value, /, *args: Value, **kwargs: Value) -> Value:
        """Call what a template calls."""
        owner = getattr(function, "__self__", None)
        estimate = ESTIMATES.get(getattr(function, "__name__", ""))
        if isinstance(owner, str | bytes) and estimate is not None:
            text_first = (
                (args[0], owner) if function.__name__ == "join" and args else (owner, *args)
            )
            self.budget.spend(estimate(*text_first, **kwargs))
        self.budget.spend(CALL)
        result = super().call(context, function, *args, **kwargs)
        return result if isinstance(result, Namespace) else self.budget.weighed(result)

    def call_binop(self, context: Context, operator: str, left: Value, right: Value) -> Value:
        """Work out one operation whose result may be larger than its operands."""
        self.budget.spend(estimated_operation(operator, left, right))
        return super().call_binop(context, operator, left, right)

    def is_safe_attribute(self, obj: Value, attr: str, value: Value) -> bool:
        """The sandbox's own rule, and no methods that take a width."""
        return attr not in _REFUSED_METHODS and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Value) -> Callable[..., str] | None:  # noqa: ARG002
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
def _printed(context: Context, value: Value) -> Value:
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

    def _filtered(self, node: nodes.Node, name: str, *constants: int) -> nodes.Filter:
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

    def _literal(self, node: nodes.List | nodes.Tuple | nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        stored = isinstance(node, nodes.Tuple) and node.ctx != "load"
        return node if stored else self._filtered(node, _WEIGHED)

    visit_List = visit_Tuple = visit_Dict = _literal  # noqa: N815 - as above

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802 - as above
        """`~` makes texts of its operands, so these are weighed first."""
        self.generic_visit(node)
        node.nodes = [self._filtered(operand, _WEIGHED) for operand in node.nodes]
        return self._filtered(node, _WEIGHED)


def _with_self(node: nodes.Node, kind: type[nodes.TemplateData]) -> Iterator[nodes.TemplateData]:
    if isinstance(node, kind):
        yield node
    yield from node.find_all(kind)
